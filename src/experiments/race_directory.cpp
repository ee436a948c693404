#include "experiments/race_directory.h"

#include <fmt/format.h>

#include "data/token_store.h"
#include "evaluation/text_roles.h"
#include "storage/outputs.h"

namespace starling {
namespace {

// Refuses a race that would overwrite one of the files that it reads.
void refuse_own_inputs(const RaceRecipe& r) {
  std::vector<NamedPath> inputs = named_texts(race_config(r, {&r.baseline, 1, r.seeds.front(), r.baseline.rates.front(), ""}));
  inputs.insert(inputs.begin(), {"the recipe", r.file});
  for (const char* name : {"records.json", "data.json", "cluster.yml", "results.csv", "curves.csv", "table.md", "race.svg"})
    refuse_own_input({"race.output's", join_path(r.output, name)}, inputs);
}

void refuse_run_directory(const std::string& output) {
  if (is_run_directory(output))
    throw ConfigError(
        fmt::format("race.output {}: this is the directory of a run, which files of a race would damage; choose another", output));
  if (!is_race_directory(output)) refuse_run_files({"race.output", output});
}

}  // namespace

RaceDirectory::RaceDirectory(FileSystem& files, const RaceRecipe& recipe) : made_(files) {
  refuse_own_inputs(recipe);
  refuse_run_directory(recipe.output);
  const auto path = [&](const char* name) { return join_path(recipe.output, name); };
  made_.note(path("lock"));
  files.make_directories(recipe.output);
  lock_ = FileLock::try_acquire(path("lock"));
  if (!lock_) made_.keep();  // the directory belongs to the other race
  if (!lock_)
    throw ConfigError(fmt::format("{}: another race uses this directory; wait for it, or choose another race.output", recipe.output));
  // Under the lock, this race creates what is missing, and removes it again if refused.
  for (const char* name : {"runs", "replays", "data.json"}) made_.note(path(name));
  for (const char* name : {"vocab.spm", "source.spm", "target.spm", "vocab.spm.new", "source.spm.new", "target.spm.new", "data"})
    made_.note_work(path(name));
  if (!files.exists(path("data.json"))) TokenStore::require_own(files, path("data"));
  for (const char* name : {"runs", "replays"}) files.make_directories(path(name));
}

}  // namespace starling
