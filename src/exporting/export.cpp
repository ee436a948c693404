#include "exporting/export.h"

#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "exporting/ct2_export.h"
#include "exporting/hf_export.h"
#include "exporting/marian_export.h"
#include "formats/zip.h"
#include "interop/marian_bin.h"
#include "interop/npz.h"
#include "storage/outputs.h"
#include "storage/path_rollback.h"
#include "text/vocabulary_format.h"
#include "text/word_pieces.h"

namespace starling {
namespace {

using NamedFiles = std::vector<std::pair<std::string, std::string>>;  // names and contents
using Notes = std::vector<std::string>;

// SentencePiece models under the format's names: of one for both sides, of the source's, of the target's.
std::pair<std::string, std::string> add_vocabularies(bool joint, const std::string& source_bytes, const std::string& target_bytes,
                                                     const std::array<const char*, 3>& names, NamedFiles& to) {
  const auto [both, source, target] = names;
  if (joint) {
    to.emplace_back(both, source_bytes);
    return {both, both};
  }
  to.emplace_back(source, source_bytes);
  to.emplace_back(target, target_bytes);
  return {source, target};
}

constexpr const char* kCodes = "bpe.model";

bool has_sentence_piece(const Vocabularies& v) { return !v.source().word_pieces() && !v.target().word_pieces(); }

bool same_codes(const Vocabularies& v) {
  const moses::WordPieces *const source = v.source().word_pieces(), *const target = v.target().word_pieces();
  return source && target && source->settings().codes == target->settings().codes;
}

// The codes of subword-nmt, in one file if they are those of both sides, and the lists of abbreviations that came with them.
void add_codes(const Vocabularies& v, const std::string& folder, NamedFiles& to) {
  std::map<std::string, std::string> files;
  for (const auto& [side, name] : {std::pair{&v.source(), "source"}, {&v.target(), "target"}}) {
    const moses::WordPieces* const words = side->word_pieces();
    if (!words) {
      files.emplace(fmt::format("{}.spm", name), side->bytes());
      continue;
    }
    const moses::Settings& settings = words->settings();
    files.emplace(same_codes(v) ? kCodes : fmt::format("{}.bpe", name), settings.codes);
    if (!settings.text.abbreviations.empty()) files.emplace("nonbreaking_prefix." + settings.text.language, settings.text.abbreviations);
  }
  for (auto& [name, content] : files) to.emplace_back(folder + name, std::move(content));
}

// Whether Argos's way from text to tokens, which is sacremoses and one file of codes, is that of a model.
bool as_argos(const Vocabularies& v) {
  const auto plain = [](const Vocabulary& side) {
    const moses::Options& text = side.word_pieces()->settings().text;
    return text.words && !text.perl && !text.split_hyphens && !text.plain_asian_marks && text.normalise_marks;
  };
  return same_codes(v) && plain(v.source()) && plain(v.target());
}

// decoder.yml, or the configuration of bergamot-translator, which has the same keys.
std::string search_yaml(const SearchOptions& search, const std::string& model, const std::pair<std::string, std::string>& vocabularies) {
  std::string yaml =
      fmt::format("relative-paths: true\nmodels:\n  - {}\nvocabs:\n  - {}\n  - {}\n", model, vocabularies.first, vocabularies.second);
  yaml += fmt::format("beam-size: {}\nnormalize: {}\nword-penalty: {}\nmax-length-factor: {}\nskip-cost: true\n", search.beam,
                      search.length_penalty, search.word_penalty, search.max_length_factor);
  if (search.allow_unknown) yaml += "allow-unk: true\n";
  return yaml;
}

NamedFiles marian_files(const LoadedModel& model, bool bergamot, bool integers, Notes& notes) {
  const ModelDescription& d = model.description;
  NamedFiles files;
  const MarianModel marian = marian_model(model, integers);
  const std::string name = bergamot ? "model.bin" : "model.npz";
  files.emplace_back(name, bergamot ? marian_bin(marian.arrays) : npz_of(marian.arrays));
  const auto vocabularies =
      add_vocabularies(d.vocabularies.joint(), marian.source, marian.target,
                       {"vocab.spm", bergamot ? "srcvocab.spm" : "source.spm", bergamot ? "trgvocab.spm" : "target.spm"}, files);
  std::string yaml = search_yaml(d.search, name, vocabularies);
  if (bergamot) yaml += fmt::format("gemm-precision: {}\n", integers ? "int8shiftAll" : "float32");
  files.emplace_back(bergamot ? "config.yml" : "decoder.yml", std::move(yaml));
  if (d.search.length_penalty > 0 && d.search.length_penalty_form == LengthPenaltyForm::gnmt)
    notes.push_back(fmt::format("note       length penalty {} means ((5+n)/6)^a here and n^a there, which prefers longer translations",
                                d.search.length_penalty));
  if (d.config.norm_epsilon != 1e-6)
    notes.push_back(fmt::format("note       layer normalisation adds {} to the variance here and 1e-6 there, so scores differ slightly",
                                d.config.norm_epsilon));
  if (d.config.alignment_head > 1) notes.push_back("note       alignments are those of the first head there");
  if (marian.target != d.vocabularies.target().bytes())
    notes.push_back("note       symbols without a meaning fill the vocabulary up to a multiple of 8, which the integers need");
  if (d.search.coverage_penalty > 0) notes.push_back("note       the coverage penalty is left out: Marian has none");
  return files;
}

void note_positions(const ModelConfig& c, Notes& notes) {
  if (c.relative_positions == 0 && c.position_table == 0 && c.first_position != 1)
    notes.push_back("note       sentences may have at most 2,048 tokens there");
}

NamedFiles ctranslate2_files(FileSystem& system, const LoadedModel& model, bool integers, Notes& notes) {
  NamedFiles files = ct2_files(system, model, integers);
  const Vocabularies& v = model.description.vocabularies;
  note_positions(model.description.config, notes);
  if (!has_sentence_piece(v)) {
    add_codes(v, "", files);
    notes.push_back("note       it takes and gives pieces: Moses's tokenizer and subword-nmt with the codes beside it make them");
    return files;
  }
  add_vocabularies(v.joint(), v.source().bytes(), v.target().bytes(), {"sentencepiece.model", "source.spm", "target.spm"}, files);
  notes.push_back("note       it takes and gives pieces: split and join text with the SentencePiece models beside it");
  return files;
}

// A package, which is installed by unpacking it: one folder with the model, metadata and the SentencePiece model of both sides.
std::string argos_package(FileSystem& system, const LoadedModel& model, bool integers, Notes& notes) {
  const ModelDescription& d = model.description;
  const std::string folder = fmt::format("translate-{}_{}-1_0/", d.languages.source, d.languages.target);
  const nlohmann::json metadata{{"package_version", "1.0"},
                                {"argos_version", "1.9.0"},
                                {"from_code", d.languages.source},
                                {"from_name", d.languages.source},
                                {"to_code", d.languages.target},
                                {"to_name", d.languages.target},
                                {"target_prefix", d.search.target_prefix}};
  NamedFiles files{{folder + "metadata.json", metadata.dump(2) + "\n"},
                   {folder + "README.md", "A translation model trained by Starling.\n"}};
  if (has_sentence_piece(d.vocabularies))
    files.emplace_back(folder + "sentencepiece.model", d.vocabularies.source().bytes());
  else
    add_codes(d.vocabularies, folder, files);
  for (auto& [name, content] : ct2_files(system, model, integers)) files.emplace_back(folder + "model/" + name, std::move(content));
  note_positions(d.config, notes);
  return zip_archive(files);
}

bool same_pieces(const Vocabulary& a, const Vocabulary& b) {
  if (a.size() != b.size()) return false;
  for (int32_t id = 0; id < a.size(); ++id)
    if (a.piece(id) != b.piece(id)) return false;
  return true;
}

PortableVocabulary portable(const Vocabularies& v) {
  const auto whole = [](const Vocabulary& v) { return v.size() == static_cast<int64_t>(vocabulary_format::pieces(v.bytes()).size()); };
  return {.joint = v.joint(),
          .same_pieces = same_pieces(v.source(), v.target()),
          .whole = whole(v.source()) && whole(v.target()),
          .sentence_piece = has_sentence_piece(v),
          .one_splitter = has_sentence_piece(v) ? v.joint() : as_argos(v),
          .begin = v.target().bos(),
          .source_padding = v.source().pad(),
          .target_padding = v.target().pad(),
          .target_size = v.target().size()};
}

// Throws ConfigError naming everything that keeps the model from the program.
void require_no_obstacles(const ModelDescription& d, const ExportOptions& o) {
  std::vector<std::string> lines;
  bool trained = false;
  for (const Obstacle& each : obstacles(o.to, d.config, portable(d.vocabularies), {.integers = o.integers})) {
    lines.push_back(each.text(o.to));
    trained |= !each.set.empty();
  }
  if (o.to == Program::argos) {
    if (d.languages.source.empty() || d.languages.target.empty())
      lines.emplace_back("a package names its languages, but the model does not; give --source-language and --target-language");
    if (const std::vector<std::string> tags = language_tags(d.languages); !tags.empty())
      lines.push_back(
          fmt::format("the model needs a tag in front of each source ({}), which a package cannot add; export it to another format",
                      fmt::join(tags, " or ")));
  }
  if (o.integers && o.to == Program::marian)
    lines.emplace_back(
        "Marian reads 8-bit integers from binary models; choose --to bergamot, whose .bin it reads too, or leave --int8 out");
  if (o.integers && o.to == Program::huggingface)
    lines.emplace_back("transformers' folders hold floats; leave --int8 out, and quantise the model there");
  if (lines.empty()) return;
  throw ConfigError(fmt::format("{}: {}{}", d.directory, fmt::join(lines, "; "),
                                trained ? fmt::format("; train a model with --model.for {}, which sets these keys", word(o.to)) : ""));
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

  require_no_obstacles(model.description, o);

  Notes notes;
  const std::vector<std::string> tags = language_tags(model.description.languages);
  if (!tags.empty())
    notes.push_back(
        fmt::format("note       put the tag of the target language, {}, in front of the pieces there yourself", fmt::join(tags, " or ")));
  const bool package = o.to == Program::argos;
  NamedFiles content;
  if (package)
    content.emplace_back(o.output, argos_package(files, model, o.integers, notes));
  else if (o.to == Program::ctranslate2)
    content = ctranslate2_files(files, model, o.integers, notes);
  else if (o.to == Program::huggingface)
    content = hf_files(model, notes);
  else
    content = marian_files(model, o.to == Program::bergamot, o.integers, notes);

  const SearchOptions& search = model.description.search;
  if ((search.no_repeat_ngram > 0 && o.to != Program::huggingface) || !search.suppress.empty())
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
