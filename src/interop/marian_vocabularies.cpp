// Where the vocabularies of a model of Marian's are.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/quotes.h"
#include "interop/marian.h"
#include "interop/marian_folder.h"
#include "interop/word_pieces.h"

namespace starling {
namespace {

// Marian's rule: a name that ends in .spm is that of a SentencePiece model, any other that of a list of pieces.
bool is_list(const std::string& name) { return !without_packing(name).ends_with(".spm"); }

void fill(std::string& to, const std::string& name) {
  if (to.empty()) to = name;
}

// The name of a file in the folder, packed or not; "" if it has none of that name.
std::string in_folder(const ForeignFiles& folder, const std::string& name) {
  for (const char* packing : {"", ".gz", ".zst"})
    if (folder.has(name + packing)) return name + packing;
  return "";
}

// Where a vocabulary is that settings name: beside the model, since models are moved; else, of a folder, where they say. Relative paths are
// those from the folder, or from where the training ran, which the model's own path tells. "" if it is nowhere.
std::string find_named(FileSystem& files, const ForeignFiles& folder, const std::string& name, const std::vector<std::string>& models) {
  if (const std::string beside = in_folder(folder, file_name(name)); !beside.empty()) return beside;
  if (folder.directory().empty() || name.empty()) return "";
  namespace fs = std::filesystem;
  const fs::path here = fs::absolute(folder.directory()).lexically_normal();
  std::vector<fs::path> places{here};
  for (const std::string& model : models) {
    fs::path below = fs::path(model).parent_path(), root = here.has_filename() ? here : here.parent_path();
    for (; !below.empty() && below.is_relative() && below.filename() == root.filename(); below = below.parent_path())
      root = root.parent_path();
    if (below.empty()) places.push_back(root);
  }
  for (const fs::path& place : places)
    if (const std::string path = (place / name).lexically_normal().string(); files.info(path).kind == FileKind::file) return path;
  return "";
}

// The SentencePiece models of two languages, source first, by names such as vocab.en.spm and model.ende.bin.
std::pair<std::string, std::string> by_languages(const ForeignFiles& folder, const std::string& weights,
                                                 const std::vector<std::string>& models) {
  if (models.size() != 2) return {};
  const auto code = [](const std::string& name) {
    const std::string plain = without_packing(name), stem = plain.substr(0, plain.size() - 4);
    return stem.substr(stem.rfind('.') + 1);
  };
  const std::string a = code(models[0]), b = code(models[1]), directory = folder.directory();
  const std::filesystem::path whole = std::filesystem::absolute(directory).lexically_normal();
  const std::string below = directory.empty() ? "" : (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  const auto says = [&](const std::string& first, const std::string& second) {
    for (const char* between : {"", "-", "_"})
      for (const std::string& text : {weights, below})
        if (text.find(first + between + second) != std::string::npos) return true;
    return false;
  };
  if (a.empty() || b.empty() || says(a, b) == says(b, a)) return {};
  return says(a, b) ? std::pair(models[0], models[1]) : std::pair(models[1], models[0]);
}

// The list of an OPUS-MT model whose decoder.yml is gone.
std::string only_list(const ForeignFiles& folder) {
  std::vector<std::string> lists;
  for (const std::string& name : folder.names())
    if (at_top(name) && name.ends_with("vocab.yml")) lists.push_back(name);
  return lists.size() == 1 ? lists[0] : "";
}

// The codes of subword-nmt that split the source's and the target's text: two files, or one for both.
std::pair<std::string, std::string> codes_of(const ForeignFiles& folder) {
  std::vector<std::string> codes;
  for (const std::string& name : folder.names())
    if (at_top(name) && has_name_of_codes(name)) codes.push_back(name);
  for (const auto& [source, target] : {std::pair{"source.bpe", "target.bpe"}, {"source.codes", "target.codes"}})
    if (folder.has(source) && folder.has(target)) return {source, target};
  if (codes.size() == 1) return {codes[0], codes[0]};
  if (codes.empty()) return {};
  throw ConfigError(
      fmt::format("{}: {} and {} are there, but nothing says which codes are the source's; give --source-vocab and "
                  "--target-vocab",
                  folder.where(""), printable(codes[0]), printable(codes[1])));
}

constexpr const char* kVocabularyOptions = "name it with --vocab, or both with --source-vocab and --target-vocab";

[[noreturn]] void refuse_absent(const ForeignFiles& folder, const MarianFiles& marian, const std::string& vocabulary) {
  throw ConfigError(fmt::format("{}: {} names the vocabulary {}, which is not there; copy it beside the model, or {}", folder.where(""),
                                marian.settings, printable(vocabulary), kVocabularyOptions));
}

[[noreturn]] void refuse_without(const ForeignFiles& folder, const MarianFiles& marian, const std::vector<std::string>& named,
                                 const std::vector<std::string>& models) {
  const std::string where = folder.where("");
  if (models.size() == 2)
    throw ConfigError(fmt::format("{}: {} and {} are there, but nothing says which is the source's; give --source-vocab and --target-vocab",
                                  where, printable(models[0]), printable(models[1])));
  if (models.size() > 2)
    throw ConfigError(fmt::format("{}: there are {} SentencePiece models; {}", where, models.size(), kVocabularyOptions));
  if (!named.empty() && !is_list(named[0])) refuse_absent(folder, marian, named[0]);
  throw ConfigError(fmt::format("{}: there is no SentencePiece model; {}", where, kVocabularyOptions));
}

}  // namespace

VocabularyFiles marian_vocabularies(FileSystem& files, const ForeignFiles& folder, const MarianFiles& marian, VocabularyFiles v) {
  std::vector<std::string> named, ran;
  if (!marian.settings.empty()) {
    const std::string text = folder.read(marian.settings), where = folder.where(marian.settings);
    named = marian_vocabulary_names(text, where);
    ran = marian_model_names(text, where);
  }
  const bool source_given = !v.source.empty(), target_given = !v.target.empty();
  const auto take = [&](const std::string& found, const char* usual, bool given, std::string& model, std::string& numbers) {
    if (is_list(found)) fill(numbers, found);
    if (!is_list(found) && !given) fill(model, found);
    if (is_list(found) && !given && folder.has(usual)) fill(model, usual);
  };
  if (!named.empty()) {
    const std::string source = find_named(files, folder, named.front(), ran), target = find_named(files, folder, named.back(), ran);
    const bool half = source.empty() != target.empty();
    if (half && !source_given && !target_given) refuse_absent(folder, marian, source.empty() ? named.front() : named.back());
    if (!source.empty()) take(source, "source.spm", source_given, v.source, v.source_numbers);
    if (!target.empty() && (!source_given || target_given)) take(target, "target.spm", target_given, v.target, v.target_numbers);
  }
  std::vector<std::string> models;
  for (const std::string& name : folder.names())
    if (at_top(name) && without_packing(name).ends_with(".spm")) models.push_back(name);
  const auto beginning = [&](const std::string& begin) {
    const auto found = std::find_if(models.begin(), models.end(), [&](const std::string& name) { return name.starts_with(begin); });
    return found == models.end() ? std::string() : *found;
  };
  if (models.size() == 1) fill(v.source, models[0]);
  for (const auto& [source, target] : {std::pair{"source.spm", "target.spm"}, {"srcvocab.", "trgvocab."}, {"vocab.src.", "vocab.trg."}})
    if (v.source.empty() && !beginning(source).empty() && !beginning(target).empty()) {
      v.source = beginning(source);
      fill(v.target, beginning(target));
    }
  if (v.source.empty()) {
    const auto [source, target] = by_languages(folder, marian.weights, models);
    fill(v.source, source);
    fill(v.target, target);
  }
  // A joint vocabulary has a copy for each side, as Mozilla's pipeline makes them.
  if (v.source.empty() && models.size() == 2 &&
      read_foreign(files, folder, models[0]).content == read_foreign(files, folder, models[1]).content)
    v.source = models[0];
  if (named.empty() && !source_given) fill(v.source_numbers, only_list(folder));
  fill(v.target_numbers, v.source_numbers);
  if (v.source.empty() && models.empty()) std::tie(v.source, v.target) = codes_of(folder);
  if (v.source.empty() && (v.source_numbers.empty() || !models.empty())) refuse_without(folder, marian, named, models);
  fill(v.target, v.source);
  return v;
}

}  // namespace starling
