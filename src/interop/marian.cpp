#include "interop/marian.h"

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "base/quotes.h"
#include "interop/marian_bin.h"
#include "interop/marian_names.h"
#include "interop/npz.h"
#include "interop/recognise.h"
#include "interop/word_pieces.h"

namespace starling {
namespace {

constexpr const char* kSettings = "special:model.yml";
constexpr const char* kFirefoxSearch = "beam-size: 1\nnormalize: 1\nmax-length-factor: 2\n";

std::vector<ForeignArray> read_arrays(const ForeignFile& file, ByteBudget& budget) {
  return is_marian_bin(file.content) ? read_marian_bin(file.content, file.where)
                                     : read_npz(std::as_bytes(std::span(file.content)), file.where, budget);
}

// The parts of one of our matrices, with the same number of rows.
struct Parts {
  std::vector<const ForeignArray*> arrays;
  int64_t rows = 0, columns = 0;
  bool integers() const {
    return std::all_of(arrays.begin(), arrays.end(), [](const ForeignArray* a) { return a->type == "q8"; });
  }
};

// [rows, columns] of an array; a vector has one row.
std::pair<int64_t, int64_t> matrix_shape(const ForeignArray& a, const std::string& where) {
  if (a.shape.size() == 1) return {1, a.shape[0]};
  if (a.bytes.empty()) throw DataError(fmt::format("{}: {} has no elements", where, a.name));
  if (a.shape.size() != 2) throw DataError(fmt::format("{}: {} has {} dimensions instead of 2", where, a.name, a.shape.size()));
  return {a.shape[0], a.shape[1]};
}

std::vector<float> floats_of(const ForeignArray& a, const std::string& where) {
  if (a.type == "q8") {
    std::vector<float> values;
    values.reserve(a.bytes.size());
    for (const char c : a.bytes) values.push_back(a.unit * static_cast<float>(static_cast<int8_t>(c)));
    return values;
  }
  if (a.type != "f4") throw DataError(fmt::format("{}: {} has elements of type {}, not f4", where, a.name, a.type));
  return elements_of<float>(a.bytes);
}

// Parts side by side, as floats, or as integers where all of them are. Each token's row of a table has one unit, as has each column of a
// part.
void add_tensor(const std::string& name, const Parts& parts, const std::string& where, std::vector<OwnedTensor>& tensors) {
  const auto side_by_side = [&](int64_t element, const std::vector<std::string_view>& data) {
    std::string bytes;
    bytes.reserve(static_cast<size_t>(parts.rows * parts.columns * element));
    for (int64_t r = 0; r < parts.rows; ++r)
      for (const std::string_view part : data) {
        const size_t row = part.size() / static_cast<size_t>(std::max<int64_t>(parts.rows, 1));
        bytes += part.substr(static_cast<size_t>(r) * row, row);
      }
    return bytes;
  };
  const bool whole = parts.arrays.size() == 1;  // then there is nothing to put side by side
  const bool vector = name.ends_with("bias") || name.ends_with("norm.scale");
  const std::vector<int64_t> shape = vector && parts.rows == 1 ? std::vector{parts.columns} : std::vector{parts.rows, parts.columns};
  if (parts.integers()) {
    std::vector<std::string_view> data;
    std::vector<float> scales;  // weight = scale * integer / 127
    const bool table = name.ends_with("embedding") || name == "decoder.output";
    for (const ForeignArray* a : parts.arrays) {
      data.push_back(a->bytes);
      scales.insert(scales.end(), static_cast<size_t>(table ? parts.rows : matrix_shape(*a, where).second), 127 * a->unit);
    }
    tensors.push_back({name, "I8", shape, whole ? parts.arrays[0]->bytes.kept() : side_by_side(1, data)});
    tensors.push_back(float_tensor(name + ".scale", table ? std::vector<int64_t>{parts.rows, 1} : std::vector<int64_t>{1, parts.columns},
                                   std::move(scales)));
    return;
  }
  if (whole && parts.arrays[0]->type == "f4") {
    tensors.push_back({name, "F32", shape, parts.arrays[0]->bytes.kept()});
    return;
  }
  std::vector<std::vector<float>> values;
  std::vector<std::string_view> data;
  for (const ForeignArray* a : parts.arrays) values.push_back(floats_of(*a, where));
  for (const std::vector<float>& v : values) data.emplace_back(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
  tensors.push_back({name, "F32", shape, side_by_side(sizeof(float), data)});
}

// Older versions keep the output layer's weight the other way round.
void turn_output(std::map<std::string, ForeignArray>& arrays, const std::string& where) {
  const auto found = arrays.find("decoder_ff_logit_out_W");
  if (found == arrays.end()) return;
  const auto [rows, columns] = matrix_shape(found->second, where);
  ForeignArray array{.name = "decoder_ff_logit_out_Wt",
                     .type = "f4",
                     .shape = {columns, rows},
                     .bytes = transposed(floats_of(found->second, where), rows, columns)};
  arrays.erase(found);
  arrays.emplace(array.name, std::move(array));
}

// path: a SentencePiece model or codes of subword-nmt; "": text has tokens with spaces between them.
Vocabulary vocabulary_of(FileSystem& files, const ForeignFiles& folder, const std::string& path, const std::string& numbers, int64_t rows,
                         const std::string& language) {
  ForeignFile model = path.empty() ? ForeignFile() : read_foreign(files, folder, path);
  const bool codes = !path.empty() && is_codes(model);
  if (codes && numbers.empty())
    throw ConfigError(
        fmt::format("{}: codes of subword-nmt need the list of the model's tokens, vocab.yml; give it with --numbers", model.where));
  if (numbers.empty()) return usual_vocabulary(std::move(model), folder.budget());
  const ForeignFile list = read_foreign(files, folder, numbers);
  std::vector<std::string> pieces = marian_pieces(list.content, list.where, folder.budget());
  folder.budget().take(static_cast<uint64_t>(std::max<int64_t>(0, rows)) * kPieceBytes, list.where, "a piece for each row of the model");
  for (auto n = static_cast<int64_t>(pieces.size()); n < rows; ++n) pieces.push_back(vocabulary_format::row_without_piece(n));
  if (path.empty() || codes)
    return token_vocabulary(pieces, list.where, codes ? &model : nullptr, marian_text(folder, language), folder.budget());
  return numbered_vocabulary(model, {std::move(pieces), {}}, folder.budget());
}

}  // namespace

std::vector<OwnedTensor> marian_tensors(std::vector<ForeignArray> list, const ModelConfig& config, const std::string& where) {
  std::map<std::string, ForeignArray> arrays;
  for (ForeignArray& a : list)
    if (!a.name.starts_with("special:") && !a.name.ends_with("_QuantMultA"))
      if (const std::string name = a.name; !arrays.emplace(name, std::move(a)).second)
        throw DataError(fmt::format("{}: {} occurs twice", where, name));
  turn_output(arrays, where);
  std::vector<OwnedTensor> tensors;
  std::vector<std::string> used;
  for (const MarianName& name : marian_names(config)) {
    Parts parts;
    for (const std::string& theirs : name.theirs) {
      const auto found = arrays.find(theirs);
      if (found == arrays.end()) throw DataError(fmt::format("{}: tensor {} is missing; fetch the model again", where, theirs));
      const auto [rows, columns] = matrix_shape(found->second, where);
      if (!parts.arrays.empty() && rows != parts.rows)
        throw DataError(fmt::format("{}: {} has {} rows, but {} has {}", where, theirs, rows, name.theirs[0], parts.rows));
      parts.arrays.push_back(&found->second);
      parts.rows = rows;
      parts.columns += columns;
      used.push_back(theirs);
    }
    add_tensor(name.ours, parts, where, tensors);
  }
  for (const std::string& name : used) arrays.erase(name);
  if (!arrays.empty()) {
    std::vector<std::string> rest;
    for (const auto& [name, array] : arrays) rest.push_back(name);
    throw ConfigError(fmt::format("{}: it has weights that Starling's models do not have: {}; it cannot be imported", where,
                                  printable(fmt::format("{}", fmt::join(rest, ", ")))));
  }
  return tensors;
}

ImportedModel read_marian(FileSystem& files, const ForeignFiles& folder, const MarianFiles& marian, const VocabularyFiles& given,
                          const Languages& given_languages) {
  VocabularyFiles v = marian_vocabularies(files, folder, marian, given);
  if (v.source_numbers.empty() && v.target_numbers.empty()) {
    const BudgetScope scope(folder.budget());
    if (read_foreign(files, folder, v.source).content == read_foreign(files, folder, v.target).content)
      v.target = v.source;  // Mozilla's pipeline has a copy of a joint vocabulary for each side
  }
  const ForeignFile file = read_foreign(files, folder, marian.weights);
  const std::string &name = file.name, &where = file.where;
  std::vector<ForeignArray> arrays = read_arrays(file, folder.budget());
  const auto settings = std::find_if(arrays.begin(), arrays.end(), [](const ForeignArray& a) { return a.name == kSettings; });
  if (settings == arrays.end()) throw DataError(fmt::format("{}: it has no {}, so it is not a Marian model", where, kSettings));
  const std::string yaml(settings->bytes.substr(0, settings->bytes.find('\0')));
  const ModelConfig config = marian_config(yaml, where + ": " + kSettings);

  SearchOptions search;
  std::vector<std::string> notes;
  if (!marian.others.empty())
    notes.push_back(fmt::format("{} there, such as {}; name a file to take another than {}.",
                                counted(marian.others.size(), "further model") + (marian.others.size() == 1 ? " is" : " are"),
                                marian.others[0], name));
  if (!marian.settings.empty()) {
    search = marian_search(folder.read(marian.settings), folder.where(marian.settings));
  } else {
    const bool firefox = without_packing(name).ends_with(".bin");
    search = marian_search(firefox ? kFirefoxSearch : "{}", where);
    notes.push_back(firefox ? "The search has Firefox's settings: beam 1, length penalty 1. A larger beam translates better."
                            : "There is no decoder.yml, so the search has Marian's defaults: beam 12, no length penalty.");
  }
  const auto rows = [&](const char* table) {
    const auto found =
        std::find_if(arrays.begin(), arrays.end(), [&](const ForeignArray& a) { return a.name == "Wemb" || a.name == table; });
    return found == arrays.end() || found->shape.empty() ? 0 : found->shape[0];
  };
  Languages languages = has_name_of_codes(v.source) ? opus_languages(folder) : languages_beside(folder, name);
  if (!given_languages.source.empty()) languages.source = given_languages.source;
  if (!given_languages.target.empty()) languages.target = given_languages.target;
  bool joint = v.source == v.target && v.source_numbers == v.target_numbers;
  Vocabulary source = vocabulary_of(files, folder, v.source, v.source_numbers, rows("encoder_Wemb"), languages.source);
  const bool codes = source.word_pieces() != nullptr;
  joint = joint && (!codes || languages.source == languages.target);
  std::optional<Vocabulary> target;
  if (!joint) target = vocabulary_of(files, folder, v.target, v.target_numbers, rows("decoder_Wemb"), languages.target);
  if (codes || v.source.empty())
    notes.push_back(text_note(codes ? marian_text(folder, languages.source) : moses::Options{.words = false}, codes));
  for (const std::string& file : folder.names())
    if (file.starts_with("lex.")) notes.push_back(fmt::format("{}, a lexical shortlist, is not needed: all pieces are considered.", file));
  if (folder.has("preprocess.sh") && !codes)
    notes.push_back("Its preprocess.sh, which normalises punctuation and spaces, is not applied; most text does not need it.");

  ImportedModel model{.kind = fmt::format("Marian's {}", name),
                      .config = config,
                      .search = search,
                      .languages = languages,
                      .vocabularies = Vocabularies(std::move(source), std::move(target)),
                      .notes = std::move(notes)};
  model.tensors = marian_tensors(std::move(arrays), config, where);
  model.further_files = further_files(folder);
  return model;
}

}  // namespace starling
