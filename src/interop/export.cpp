#include "interop/export.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "interop/ct2_export.h"
#include "interop/hf_export.h"
#include "interop/marian_bin.h"
#include "interop/marian_export.h"
#include "interop/npz.h"
#include "interop/zip.h"
#include "storage/outputs.h"
#include "storage/path_rollback.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

using NamedFiles = std::vector<std::pair<std::string, std::string>>;  // names and contents
using Notes = std::vector<std::string>;

// Vocabularies as SentencePiece models under the format's names: of one for both sides, of the source's, of the target's.
std::pair<std::string, std::string> add_vocabularies(const ModelDescription& d, const std::array<const char*, 3>& names, NamedFiles& to) {
  const auto [joint, source, target] = names;
  if (d.vocabularies.joint()) {
    to.emplace_back(joint, d.vocabularies.source().bytes());
    return {joint, joint};
  }
  to.emplace_back(source, d.vocabularies.source().bytes());
  to.emplace_back(target, d.vocabularies.target().bytes());
  return {source, target};
}

// decoder.yml, or the configuration of bergamot-translator, which has the same keys.
std::string search_yaml(const SearchOptions& search, const std::string& model, const std::pair<std::string, std::string>& vocabularies) {
  std::string yaml =
      fmt::format("relative-paths: true\nmodels:\n  - {}\nvocabs:\n  - {}\n  - {}\n", model, vocabularies.first, vocabularies.second);
  yaml += fmt::format("beam-size: {}\nnormalize: {}\nword-penalty: 0\nmax-length-factor: {}\nskip-cost: true\n", search.beam,
                      search.length_penalty, search.max_length_factor);
  if (search.allow_unknown) yaml += "allow-unk: true\n";
  return yaml;
}

NamedFiles marian_files(const LoadedModel& model, bool bergamot, bool integers, Notes& notes) {
  const ModelDescription& d = model.description;
  for (const Vocabulary* v : {&d.vocabularies.source(), &d.vocabularies.target()})
    if (v->size() != static_cast<int64_t>(vocabulary_format::pieces(v->bytes()).size()))
      throw ConfigError(
          fmt::format("{}: the model has no numbers for some pieces of its vocabulary, which Marian cannot know", d.directory));
  if (integers && !bergamot)
    throw ConfigError("--int8: Marian reads 8-bit integers from binary models; choose --to bergamot, whose .bin it reads too");
  NamedFiles files;
  const std::vector<ForeignArray> arrays = marian_arrays(model, integers);
  const std::string name = bergamot ? "model.bin" : "model.npz";
  files.emplace_back(name, bergamot ? marian_bin(arrays) : npz_of(arrays));
  const auto vocabularies =
      add_vocabularies(d, {"vocab.spm", bergamot ? "srcvocab.spm" : "source.spm", bergamot ? "trgvocab.spm" : "target.spm"}, files);
  std::string yaml = search_yaml(d.search, name, vocabularies);
  if (bergamot) yaml += fmt::format("gemm-precision: {}\n", integers ? "int8shiftAll" : "float32");
  files.emplace_back(bergamot ? "config.yml" : "decoder.yml", std::move(yaml));
  if (d.search.length_penalty > 0 && d.search.length_penalty_form == LengthPenaltyForm::gnmt)
    notes.push_back(fmt::format("note       length penalty {} means ((5+n)/6)^a here and n^a there, which prefers longer translations",
                                d.search.length_penalty));
  if (d.search.coverage_penalty > 0) notes.push_back("note       the coverage penalty is left out: Marian has none");
  return files;
}

void note_positions(const ModelConfig& c, Notes& notes) {
  if (c.position_table == 0 && c.first_position != 1) notes.push_back("note       sentences may have at most 2,048 tokens there");
}

NamedFiles ctranslate2_files(FileSystem& system, const LoadedModel& model, bool integers, Notes& notes) {
  NamedFiles files = ct2_files(system, model, integers);
  add_vocabularies(model.description, {"sentencepiece.model", "source.spm", "target.spm"}, files);
  note_positions(model.description.config, notes);
  notes.push_back("note       it takes and gives pieces: split and join text by the SentencePiece models beside it");
  return files;
}

NamedFiles huggingface_files(const LoadedModel& model, bool integers, Notes& notes) {
  if (integers) throw ConfigError("--int8: Hugging Face's folders hold floats; leave it out, and quantise the model there");
  return hf_files(model, notes);
}

// A package, which is installed by unpacking it: one folder with the model, metadata and the SentencePiece model of both sides.
std::string argos_package(FileSystem& system, const LoadedModel& model, bool integers, Notes& notes) {
  const ModelDescription& d = model.description;
  if (d.languages.source.empty() || d.languages.target.empty())
    throw ConfigError(fmt::format(
        "{}: a package says its languages, which the model does not; give --source-language and --target-language", d.directory));
  if (!d.vocabularies.joint())
    throw ConfigError(
        fmt::format("{}: a package has one SentencePiece model for both languages; train with vocab.joint: true", d.directory));
  const std::string folder = fmt::format("translate-{}_{}-1_0/", d.languages.source, d.languages.target);
  const nlohmann::json metadata{{"package_version", "1.0"},
                                {"argos_version", "1.9.0"},
                                {"from_code", d.languages.source},
                                {"from_name", d.languages.source},
                                {"to_code", d.languages.target},
                                {"to_name", d.languages.target},
                                {"target_prefix", d.search.target_prefix}};
  NamedFiles files{{folder + "metadata.json", metadata.dump(2) + "\n"},
                   {folder + "sentencepiece.model", d.vocabularies.source().bytes()},
                   {folder + "README.md", "A translation model trained by Starling.\n"}};
  for (auto& [name, content] : ct2_files(system, model, integers)) files.emplace_back(folder + "model/" + name, std::move(content));
  note_positions(d.config, notes);
  return zip_archive(files);
}

}  // namespace

std::vector<std::string> export_model(FileSystem& files, const ExportOptions& o) {
  if (files.exists(o.output)) throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", o.output));
  refuse_run_files({"--output", o.output});
  check(o.languages, "export");
  const auto backend = make_backend("cpu:f32", 1);
  LoadedModel model = load_model(files, o.model, *backend);
  refuse_own_input({"--output", o.output}, {{"the model", model.description.directory}});
  if (!o.languages.source.empty()) model.description.languages.source = o.languages.source;
  if (!o.languages.target.empty()) model.description.languages.target = o.languages.target;

  Notes notes;
  const std::vector<std::string> tags = language_tags(model.description.languages);
  if (!tags.empty() && o.to == ExportFormat::argos)
    throw ConfigError(
        fmt::format("{}: the model needs a tag in front of each source ({}), which a package cannot give; export it to "
                    "another format",
                    model.description.directory, fmt::join(tags, " or ")));
  if (!tags.empty())
    notes.push_back(
        fmt::format("note       put the tag of the target language, {}, in front of the pieces there yourself", fmt::join(tags, " or ")));
  const bool package = o.to == ExportFormat::argos;
  NamedFiles content;
  if (package)
    content.emplace_back(o.output, argos_package(files, model, o.integers, notes));
  else if (o.to == ExportFormat::ctranslate2)
    content = ctranslate2_files(files, model, o.integers, notes);
  else if (o.to == ExportFormat::huggingface)
    content = huggingface_files(model, o.integers, notes);
  else
    content = marian_files(model, o.to == ExportFormat::bergamot, o.integers, notes);

  const SearchOptions& search = model.description.search;
  if ((search.no_repeat_ngram > 0 && o.to != ExportFormat::huggingface) || !search.suppress.empty())
    notes.push_back("note       what translations may not contain (suppress, no-repeat-ngram) is left out: give it there yourself");
  if (!search.source_prefix.empty())
    notes.push_back(fmt::format("note       put the source's prefix, {}, in front of the pieces there yourself", search.source_prefix));
  if (!search.target_prefix.empty() && !package)
    notes.push_back(fmt::format("note       give the prefix of translations, {}, with each request there", search.target_prefix));
  PathRollback rollback(files);
  rollback.note(o.output);
  files.make_directories(package ? parent_path(o.output) : o.output);
  for (const auto& [name, bytes] : content) {
    const std::string path = package ? name : join_path(o.output, name);
    files.write_file(path, bytes);
    notes.push_back(fmt::format("written    {} ({:.1f} MiB)", path, static_cast<double>(bytes.size()) / (1 << 20)));
  }
  files.sync_directory(package ? parent_path(o.output) : o.output);
  rollback.keep();
  return notes;
}

}  // namespace starling
