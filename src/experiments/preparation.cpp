// Prepares a race. Every error that would end the race later is detected before the first run, and a refused race leaves nothing behind.
#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text_files.h"
#include "data/corpus.h"
#include "experiments/race_runner.h"
#include "run/run_tokens.h"

namespace starling {

namespace fs = std::filesystem;

void RaceRunner::prepare() {
  directory_.emplace(*files_, r_);
  try {
    prepare_runs();
  } catch (const std::exception& e) {
    directory_->failed(e);
    throw;
  }
  directory_->keep();
}

void RaceRunner::prepare_runs() {
  Config config = race_config(r_, {&r_.baseline, 1, r_.seeds.front(), r_.baseline.rates.front(), ""});
  config.train.output = r_.output;  // the vocabularies of all runs are made here
  if (fs::exists(records_path())) kept_ = parse_json_object(read_text_file(records_path()), records_path());
  vocabularies_.emplace(open_vocabularies(config, *files_, progress_.say));
  plan_.count_ranks(vocabularies_->sizes());
  store_.emplace(open_run_tokens(*files_, r_.output, config.data, *vocabularies_, {}, fs::exists(data_path()),
                                 [&](const TokenStore& store) { refuse_other_data(config, store); }));
  if (plan_.ranks(r_.baseline, 1).count > 1)
    throw ConfigError(
        fmt::format("{}: one worker, by which all arms are measured, has a server with the strategy that all arms share; set "
                    "strategy.name and strategy.servers in arms",
                    r_.file));
  gradient_bytes_ = gradient_bytes(config, vocabularies_->sizes());
  step_seconds_ = step_seconds(config, r_.cluster, *store_, *vocabularies_, std::min<int64_t>(200, race_updates(config, 1)));
  say(fmt::format("one worker: {:.2f} M parameters, {} target tokens per update, {:.1f} virtual ms of computing; {} updates",
                  static_cast<double>(gradient_bytes_) / 4e6, config.train.batch_tokens, 1e3 * step_seconds_, race_updates(config, 1)));
  check_places();
  count_planned();
  publish_vocabularies(config, *files_, *vocabularies_);
}

// All runs of a race must see the same text and count the same words, whenever they are trained.
void RaceRunner::refuse_other_data(const Config& config, const TokenStore& store) const {
  const std::optional<TokenizerChoice> tokenizer = race_tokenizer(r_, config.valid);
  if (tokenizer && !tokenizer->notice().empty()) say(tokenizer->notice());
  const std::string path = data_path();
  Json now{{"training", data_digest(store)}};
  now["validation"] = sha256_file(*files_, config.valid.source) + sha256_file(*files_, config.valid.target);
  if (tokenizer) now["tokenizer"] = tokenizer->tokenizer.name();
  if (!fs::exists(path)) return files_->replace_file(path, now.dump() + "\n");
  const Json then = parse_json_object(read_text_file(path), path);
  for (const char* what : {"training", "validation"})
    if (then.value(what, Json()) != now[what])
      throw ConfigError(
          fmt::format("{}: this race began with different {} data; restore the files, or choose another race.output", r_.output, what));
  if (then.contains("tokenizer") && now.contains("tokenizer") && then["tokenizer"] != now["tokenizer"])
    throw ConfigError(fmt::format(
        "{}: this race began with the tokenizer {} of BLEU and now has {}; set valid.tokenize, install MeCab again if that is what is "
        "missing, or choose another race.output",
        r_.output, then["tokenizer"].dump(), now["tokenizer"].dump()));
}

// Refuses what would end the race later: impossible networks, and disturbances that cannot happen as given.
void RaceRunner::check_places() const {
  int most = 0;
  const auto windows = [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](const auto& x) { return x.from_s > 0 || x.until_s < decltype(x){}.until_s; });
  };
  const bool windowed = windows(r_.cluster.stragglers) || windows(r_.cluster.link_faults);
  for (const RaceArm& arm : r_.arms)
    for (const int64_t count : arm.workers) {
      const int workers = static_cast<int>(count);
      most = std::max(most, plan_.ranks(arm, workers).count);
      for (const RaceNetwork& network : r_.networks) scenario(arm, workers, network.name);
      if (windowed && !plan_.networks_of(arm, workers).front().empty())
        throw ConfigError(
            fmt::format("{}: arm {}: stragglers and link-faults that come and go (from-s, until-s) are possible only where times are "
                        "replayed (docs/guides/race.md); remove from-s and until-s, or the arm",
                        r_.file, arm.name));
    }
  for (const Straggler& s : r_.cluster.stragglers)
    if (s.rank >= most)
      throw ConfigError(fmt::format("{}: cluster.stragglers: there is no rank {} in any run, the largest has {}; give one below that",
                                    r_.file, s.rank, most));
  for (const LinkFault& f : r_.cluster.link_faults)
    if (f.node * r_.cluster.network.ranks_per_node >= most)
      throw ConfigError(fmt::format("{}: cluster.link-faults: there is no node {} in any run, the largest has {} ranks; give one that is",
                                    r_.file, f.node, most));
}

}  // namespace starling
