#include "interop/marian.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "interop/marian_names.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr const char* kSettings = "special:model.yml";

bool is_model_file(const std::string& name) { return name.ends_with(".npz") && !name.ends_with("optimizer.npz"); }

std::string only_model(const ForeignFiles& folder) {
  std::vector<std::string> models;
  for (const std::string& name : folder.names())
    if (is_model_file(name)) models.push_back(name);
  if (models.size() > 1)
    throw ConfigError(
        fmt::format("{}: there are {} models ({}); name the file of one", folder.where(""), models.size(), fmt::join(models, ", ")));
  return models.front();
}

// [rows, columns] of an array; a vector has one row.
std::pair<int64_t, int64_t> matrix_shape(const NpyArray& a, const std::string& where) {
  if (a.shape.size() == 1) return {1, a.shape[0]};
  if (a.shape.size() != 2) throw DataError(fmt::format("{}: {} has {} dimensions", where, a.name, a.shape.size()));
  return {a.shape[0], a.shape[1]};
}

std::vector<float> floats_of(const NpyArray& a, const std::string& where) {
  if (a.type != "f4") throw DataError(fmt::format("{}: {} has elements of type {}, not f4", where, a.name, a.type));
  std::vector<float> values(a.bytes.size() / sizeof(float));
  std::memcpy(values.data(), a.bytes.data(), a.bytes.size());
  return values;
}

// Older versions keep the output layer's weight the other way round.
void turn_output(std::map<std::string, NpyArray>& arrays, const std::string& where) {
  const auto found = arrays.find("decoder_ff_logit_out_W");
  if (found == arrays.end()) return;
  const auto [rows, columns] = matrix_shape(found->second, where);
  const std::vector<float> values = floats_of(found->second, where);
  std::vector<float> turned(values.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) turned[static_cast<size_t>(c * rows + r)] = values[static_cast<size_t>(r * columns + c)];
  NpyArray array{.name = "decoder_ff_logit_out_Wt", .type = "f4", .shape = {columns, rows}, .bytes = std::string(values.size() * 4, '\0')};
  std::memcpy(array.bytes.data(), turned.data(), array.bytes.size());
  arrays.erase(found);
  arrays.emplace(array.name, std::move(array));
}

Vocabulary vocabulary_of(FileSystem& files, const ForeignFiles& folder, const std::string& path, const std::string& numbers, bool written,
                         int64_t rows) {
  const auto content = [&](const std::string& name) { return folder.has(name) ? folder.read(name) : files.read_file(name); };
  const auto where = [&](const std::string& name) { return folder.has(name) ? folder.where(name) : name; };
  std::string model = content(path);
  if (numbers.empty()) return Vocabulary::from_bytes(std::move(model), where(path));
  if (const auto why = vocabulary_format::defect(model))
    throw DataError(fmt::format("{}: not a SentencePiece model ({})", where(path), *why));
  std::vector<std::string> pieces = marian_pieces(content(numbers), where(numbers));
  for (auto n = static_cast<int64_t>(pieces.size()); n < rows; ++n) pieces.push_back(fmt::format("<row {}>", n));
  return Vocabulary::from_bytes(vocabulary_format::renumbered(model, pieces, written, where(numbers)), where(numbers));
}

// Completes what is given by what the folder has: decoder.yml names vocabularies, which are SentencePiece models, or lists of pieces beside
// source.spm and target.spm.
VocabularyFiles find_vocabularies(const ForeignFiles& folder, VocabularyFiles v, const std::vector<std::string>& named) {
  if (v.source.empty()) {
    const auto take = [&](const std::string& name, const char* usual, std::string& model, std::string& numbers) {
      if (!folder.has(name)) return;
      if (name.ends_with(".yml") || name.ends_with(".yaml")) {
        numbers = name;
        if (folder.has(usual)) model = usual;
      } else {
        model = name;
      }
    };
    if (named.size() == 2) {
      take(file_name(named[0]), "source.spm", v.source, v.source_numbers);
      take(file_name(named[1]), "target.spm", v.target, v.target_numbers);
    }
    if (const auto models = folder.ending(".spm"); v.source.empty() && models.size() == 1) v.source = models[0];
    if (v.source.empty() && folder.has("source.spm") && folder.has("target.spm")) v.source = "source.spm", v.target = "target.spm";
  }
  if (v.source.empty())
    throw ConfigError(fmt::format("{}: no SentencePiece model is there; name it by --vocab, or both by --source-vocab and --target-vocab",
                                  folder.where("")));
  if (v.target.empty()) v.target = v.source, v.target_numbers = v.source_numbers;
  return v;
}

}  // namespace

std::vector<std::string> marian_vocabulary_names(const std::string& yaml, const std::string& where);  // marian_config.cpp

std::vector<OwnedTensor> marian_tensors(std::vector<NpyArray> list, const ModelConfig& config, const std::string& where) {
  std::map<std::string, NpyArray> arrays;
  for (NpyArray& a : list)
    if (!a.name.starts_with("special:")) arrays[a.name] = std::move(a);
  turn_output(arrays, where);
  std::vector<OwnedTensor> tensors;
  for (const MarianName& name : marian_names(config)) {
    std::vector<std::vector<float>> parts;
    std::vector<int64_t> widths;
    int64_t rows = 0, columns = 0;
    for (const std::string& theirs : name.theirs) {
      const auto found = arrays.find(theirs);
      if (found == arrays.end()) throw DataError(fmt::format("{}: it has no {}", where, theirs));
      const auto [r, c] = matrix_shape(found->second, where);
      if (!parts.empty() && r != rows) throw DataError(fmt::format("{}: {} has {} rows, {} {}", where, theirs, r, name.theirs[0], rows));
      parts.push_back(floats_of(found->second, where));
      widths.push_back(c);
      rows = r;
      columns += c;
      arrays.erase(found);
    }
    std::vector<float> values;
    values.reserve(static_cast<size_t>(rows * columns));
    for (int64_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < parts.size(); ++i)
        values.insert(values.end(), parts[i].begin() + r * widths[i], parts[i].begin() + (r + 1) * widths[i]);
    const bool vector = name.ours.ends_with("bias") || name.ours.ends_with("norm.scale");
    tensors.push_back(float_tensor(name.ours, vector && rows == 1 ? std::vector{columns} : std::vector{rows, columns}, values));
  }
  if (!arrays.empty()) {
    std::vector<std::string> rest;
    for (const auto& [name, array] : arrays) rest.push_back(name);
    throw ConfigError(
        fmt::format("{}: it has weights that Starling's models do not have: {}; it cannot be imported", where, fmt::join(rest, ", ")));
  }
  return tensors;
}

bool is_marian(const ForeignFiles& folder) { return std::any_of(folder.names().begin(), folder.names().end(), is_model_file); }

ImportedModel read_marian(FileSystem& files, const ForeignFiles& folder, const VocabularyFiles& given) {
  const std::string name = only_model(folder), where = folder.where(name);
  std::vector<NpyArray> arrays;
  {
    const std::string content = folder.read(name);
    arrays = read_npz(std::as_bytes(std::span(content)), where);
  }
  const auto settings = std::find_if(arrays.begin(), arrays.end(), [](const NpyArray& a) { return a.name == kSettings; });
  if (settings == arrays.end()) throw DataError(fmt::format("{}: it has no {}, so it is not a model of Marian's", where, kSettings));
  const std::string yaml = settings->bytes.substr(0, settings->bytes.find('\0'));
  const ModelConfig config = marian_config(yaml, where + ": " + kSettings);

  SearchOptions search;
  std::vector<std::string> named, notes;
  const auto decoder = std::find_if(folder.names().begin(), folder.names().end(),
                                    [&](const std::string& n) { return n == "decoder.yml" || n == name + ".decoder.yml"; });
  if (decoder != folder.names().end()) {
    const std::string text = folder.read(*decoder);
    search = marian_search(text, folder.where(*decoder));
    named = marian_vocabulary_names(text, folder.where(*decoder));
  } else {
    search = marian_search("{}", where);
    notes.push_back("There is no decoder.yml, so the search has Marian's defaults: beam 12, no length penalty.");
  }
  const VocabularyFiles v = find_vocabularies(folder, given, named);
  const auto rows = [&](const char* table) {
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NpyArray& a) { return a.name == "Wemb" || a.name == table; });
    return found == arrays.end() || found->shape.empty() ? 0 : found->shape[0];
  };
  const bool joint = v.source == v.target && v.source_numbers == v.target_numbers;
  Vocabulary source = vocabulary_of(files, folder, v.source, v.source_numbers, joint, rows("encoder_Wemb"));
  std::optional<Vocabulary> target;
  if (!joint) target = vocabulary_of(files, folder, v.target, v.target_numbers, true, rows("decoder_Wemb"));
  if (folder.has("preprocess.sh"))
    notes.push_back("Its preprocess.sh, which normalises punctuation and spaces, is not applied; most text does not need it.");

  ImportedModel model{.kind = fmt::format("Marian's {}", name),
                      .config = config,
                      .search = search,
                      .vocabularies = Vocabularies(std::move(source), std::move(target)),
                      .notes = std::move(notes)};
  model.tensors = marian_tensors(std::move(arrays), config, where);
  for (const std::string& further : folder.names())
    if (further.starts_with("LICENSE") || further == "README.md")
      model.further_files.push_back(text_part(fmt::format("original-{}", further), folder.read(further)));
  return model;
}

}  // namespace starling
