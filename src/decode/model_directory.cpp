#include "decode/model_directory.h"

#include <cstring>
#include <deque>

#include "config/config.h"
#include "decode/quantization.h"
#include "tensor/finite.h"
#include "text/vocabulary_budget.h"

namespace starling {
namespace {

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kScale = ".scale";  // suffix after the name of a matrix of 8-bit integers
constexpr const char* kInt8Weights =
    "matrices (I8) as 8-bit integers, weight = scale * integer / 127 with NAME.scale\n"
    "                      [rows, 1] or [1, columns]; the rest f32. quantization.json says what this costs";

struct Identity {  // the part of config.yml that visit(ModelConfig) leaves out
  std::string preset;
  int64_t step = 0;
  Languages languages;
};
template <class Visitor>
void visit(Visitor& v, Identity& c) {
  v.field("preset", c.preset, "preset that the model section started from");
  v.field("step", c.step, "updates of training", 0, int64_t{1} << 60);
  visit(v, c.languages);
}

// Unknown languages are omitted, so that older versions can read the file.
std::string config_text(const ModelConfig& config, const Languages& languages, int64_t step) {
  ModelConfig model = config;
  Identity identity{config.preset, step, languages}, nobody{"", -1, {}};
  const std::vector<ConfigSection> sections{config_section("about", "", identity), config_section("model", "", model)};
  const std::vector<ConfigSection> left_out{config_section("about", "", nobody)};
  return write_config(sections, {.comments = true, .defaults = left_out});
}

constexpr const char* kAbout =
    "This directory is a translation model trained by Starling.\n"
    "\n"
    "  config.yml          architecture of the model\n"
    "  decode.yml          how it decodes unless the command line says otherwise; as in its validation, or as\n"
    "                      starling tune-search found best (search.json)\n"
    "  vocab.spm           SentencePiece vocabulary of both languages (or source.spm and target.spm)\n"
    "  model.safetensors   weights, {}\n"
    "  manifest.json       sizes and SHA-256 hashes of all files\n"
    "A checkpoint also has the state of training: state.json and the ranks' rank-0.safetensors and so on.\n"
    "\n"
    "Translate raw text with:  starling translate --model THIS_DIRECTORY < input.txt\n";

}  // namespace

Part search_part(const SearchOptions& search) {
  SearchOptions options = search;
  const std::vector<ConfigSection> sections{config_section("decode", "", options)};
  return text_part("decode.yml", write_config(sections, {.comments = true}));
}

namespace {

std::vector<int64_t> dimensions(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

// Appends NAME as integers [rows, columns] and NAME.scale as floats, [rows, 1] or [1, columns]: weight = scale * integer / 127.
void append_integers(const std::string& name, const Int8Matrix& m, std::vector<NamedBytes>& tensors) {
  tensors.push_back({name, "I8", {m.rows, m.columns}, std::as_bytes(std::span(m.values))});
  tensors.push_back({name + kScale, "F32", {m.by_row ? m.rows : 1, m.by_row ? 1 : m.columns}, std::as_bytes(std::span(m.scales))});
}

// Returns the weights file. 8-bit integers are created here and live as long as the part; floats in host memory are written from where they
// are.
Part weights_part(Model& model, SafetensorsMetadata metadata, const FetchWeights& fetch) {
  std::vector<NamedBytes> tensors;
  std::vector<Tensor> floats;
  auto integers = std::make_shared<std::deque<Int8Matrix>>();
  for (const QuantizableMatrix& m : quantizable_matrices(model))
    if (m.parameter->quantized) {
      integers->push_back(round_to_int8(m.parameter->value, m.by_row));
      append_integers(m.parameter->name, integers->back(), tensors);
    }
  for (Parameter* p : model.parameters().declared()) {
    if (p->quantized) continue;
    NamedBytes& tensor = tensors.emplace_back(NamedBytes{p->name, "F32", dimensions(p->whole), {}});
    if (p->hold == Parameter::owned && !model.parameters().is_cut(*p))
      tensor.data = floats.emplace_back(p->value.on_host()).host_bytes();
    else
      tensor.source = [p, fetch](ByteSink& sink) { fetch(*p, sink); };
  }
  Part part = safetensors_part(kWeights, std::move(tensors), std::move(metadata));
  part.write = [write = std::move(part.write), integers, floats](ByteSink& sink) { write(sink); };
  return part;
}

}  // namespace

std::vector<Part> model_parts(Model& model, const ModelConfig& config, const Languages& languages, const Vocabularies& vocabularies,
                              const SearchOptions& search, int64_t step, const FetchWeights& fetch) {
  CHECK(model.whole() || fetch, "a part of a model has not all weights");
  bool quantized = false;
  for (const Parameter& p : model.parameters().all()) quantized |= p.quantized;
  std::vector<Part> parts = description_parts(config, languages, vocabularies, search, step, quantized);
  parts.push_back(weights_part(model, {{"format", "starling"}, {"step", std::to_string(step)}}, fetch));
  return parts;
}

std::vector<Part> description_parts(const ModelConfig& config, const Languages& languages, const Vocabularies& vocabularies,
                                    const SearchOptions& search, int64_t step, bool quantized) {
  std::vector<Part> parts;
  parts.push_back(text_part("about.txt", fmt::format(kAbout, quantized ? kInt8Weights : "f32")));
  parts.push_back(text_part("config.yml", config_text(config, languages, step)));
  parts.push_back(search_part(search));
  if (vocabularies.joint()) {
    parts.push_back(text_part("vocab.spm", vocabularies.source().bytes()));
  } else {
    parts.push_back(text_part("source.spm", vocabularies.source().bytes()));
    parts.push_back(text_part("target.spm", vocabularies.target().bytes()));
  }
  return parts;
}

namespace {

// Returns the values of a tensor that is stored as floats.
std::vector<float> read_floats(const SafetensorsFile& file, const std::string& name, const std::vector<int64_t>& shape) {
  const NamedBytes& tensor = file.at(name);
  if (tensor.dtype != "F32" || tensor.shape != shape)
    throw DataError(fmt::format("{}: tensor {} is {} [{}], but config.yml asks for F32 [{}]; the files do not belong together", file.path(),
                                name, tensor.dtype, fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")));
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

// Returns the values that the integers of a tensor represent.
std::vector<float> read_integers(const SafetensorsFile& file, const NamedBytes& tensor, const Shape& shape) {
  if (tensor.shape != dimensions(shape))
    throw DataError(fmt::format("{}: tensor {} is I8 [{}], but config.yml asks for {}; the files do not belong together", file.path(),
                                tensor.name, fmt::join(tensor.shape, ", "), shape.text()));
  Int8Matrix m{shape[0], shape[1], file.at(tensor.name + kScale).shape == std::vector<int64_t>{shape[0], 1}, {}, {}};
  m.scales = read_floats(file, tensor.name + kScale, {m.by_row ? m.rows : 1, m.by_row ? 1 : m.columns});
  m.values.resize(tensor.data.size());
  std::memcpy(m.values.data(), tensor.data.data(), tensor.data.size());
  std::vector<float> values(m.values.size());
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0; c < m.columns; ++c) values[r * m.columns + c] = static_cast<float>(m.value(r, c));
  return values;
}

std::vector<float> elements(const std::vector<float>& values, const std::vector<Range>& ranges) {
  std::vector<float> chosen;
  for (const Range& r : ranges) chosen.insert(chosen.end(), values.begin() + r.begin, values.begin() + r.end);
  return chosen;
}

// Refuses NaN and infinite weights. A single NaN spreads to every score, and comparing scores would not reveal it.
void require_finite(const std::string& path, const Parameter& p, std::span<const float> values) {
  const int64_t at = first_not_finite(values);
  if (at < 0) return;
  std::string place;
  for (int64_t i = p.whole.rank() - 1, rest = at; i >= 0; rest /= p.whole[static_cast<int>(i)], --i)
    place = fmt::format("{}{}{}", rest % p.whole[static_cast<int>(i)], place.empty() ? "" : ", ", place);
  throw DataError(
      fmt::format("{}: tensor {}: element [{}] of {} is {}, which is not a finite number; the training diverged or the file was "
                  "damaged: use another checkpoint or copy of the model",
                  path, p.name, place, p.whole.text(), values[static_cast<size_t>(at)]));
}

}  // namespace

void load_weights(FileSystem& files, const std::string& path, ParameterStore& parameters, bool keep_integers) {
  const SafetensorsFile file(files, path);
  for (Parameter* const each : parameters.declared()) {
    Parameter& p = *each;
    if (p.hold == Parameter::absent) continue;
    const NamedBytes& tensor = file.at(p.name);
    const bool integers = tensor.dtype == "I8" && p.whole.rank() == 2;
    std::vector<float> values = integers ? read_integers(file, tensor, p.whole) : read_floats(file, p.name, dimensions(p.whole));
    file.require_whole();
    require_finite(path, p, values);
    if (parameters.is_cut(p)) values = elements(values, parameters.local_ranges(p));
    if (p.value.dtype() == DType::f32)
      p.value.upload(std::as_bytes(std::span(values)));
    else
      p.value.from_doubles(std::vector<double>(values.begin(), values.end()));
    set_quantized(p, integers && keep_integers);
  }
  parameters.take_parts();
  parameters.changed();
}

ModelDescription describe_model(FileSystem& files, const std::string& path) {
  std::string directory = path;
  if (!files.exists(join_path(directory, kWeights))) {
    std::string damaged;
    const Report report = [&](const std::string& line) { damaged += "; " + line; };
    if (const auto best = best_checkpoint(files, path, report)) {
      directory = best->directory;
    } else if (const auto latest = latest_checkpoint(files, path, report)) {
      directory = latest->directory;
    } else {
      throw ConfigError(
          fmt::format("{}: neither a model directory ({} is missing) nor a run directory with a checkpoint; name the "
                      "train.output of a run, a directory below it, or what 'starling import' made of another program's model{}",
                      path, kWeights, damaged));
    }
  } else if (files.exists(join_path(directory, "manifest.json"))) {
    verify_directory(files, directory);  // a damaged copy must not translate with altered settings
  }
  return read_description(files, directory);
}

ModelDescription read_description(FileSystem& files, const std::string& directory) {
  const auto file = [&](const char* name) { return join_path(directory, name); };
  // Ours have some 2 KB, and 220 with ten thousand directions; one of a stranger may take 250 times its bytes while it is parsed.
  const auto document = [&](const char* name) {
    constexpr uint64_t kMostConfiguration = uint64_t{256} << 10;
    return ConfigDocument(files.read_file(file(name), kMostConfiguration), file(name));
  };
  ModelConfig config;
  Identity identity;
  {
    const std::vector<ConfigSection> sections{config_section("about", "", identity), config_section("model", "", config)};
    document("config.yml").read(sections);
    config.preset = identity.preset;
  }
  SearchOptions search;
  {
    const std::vector<ConfigSection> sections{config_section("decode", "", search)};
    document("decode.yml").read(sections);
  }
  bool quantized = false;
  const SafetensorsFile weights(files, file(kWeights));
  for (const NamedBytes& tensor : weights.tensors()) quantized |= tensor.dtype == "I8";
  const bool joint = files.exists(file("vocab.spm"));
  ByteBudget budget(files.info(file(kWeights)).size);  // the directory may come from a stranger
  const auto vocabulary = [&](const char* name) {
    constexpr uint64_t kMostBytes = uint64_t{1} << 30;
    std::string bytes = files.read_file(file(name), kMostBytes);
    budget.allow(bytes.size());
    charge_vocabulary(budget, bytes, 0, file(name));
    return Vocabulary::from_bytes(std::move(bytes), file(name));
  };
  Vocabularies vocabularies =
      joint ? Vocabularies(vocabulary("vocab.spm"), std::nullopt) : Vocabularies(vocabulary("source.spm"), vocabulary("target.spm"));
  return {directory, config, search, std::move(vocabularies), quantized, identity.step, std::move(identity.languages)};
}

namespace {

bool same_pieces(const Vocabulary& a, const Vocabulary& b) {
  if (a.size() != b.size() || a.bos() != b.bos() || a.eos() != b.eos() || a.unk() != b.unk()) return false;
  for (int32_t id = 0; id < a.size(); ++id)
    if (a.piece(id) != b.piece(id)) return false;
  return true;
}

std::unique_ptr<Model> read_model(FileSystem& files, const ModelDescription& description, Backend& backend, bool keep_integers,
                                  ShardGroup* shards = nullptr) {
  auto model = make_model(description.config, description.vocabularies.sizes(), backend, std::nullopt, false, {{}, shards});
  load_weights(files, join_path(description.directory, kWeights), model->parameters(), keep_integers);
  return model;
}

}  // namespace

LoadedModel load_model(FileSystem& files, const std::string& path, Backend& backend) {
  ModelDescription description = describe_model(files, path);
  auto model = read_model(files, description, backend, false);
  FoundConfidence confidence = find_confidence(files, description.directory);
  return {std::move(description), nullptr, std::move(model), "", std::move(confidence)};
}

LoadedModel load_model(FileSystem& files, const std::string& path, const DeviceChoice& choice, ShardGroup* shards) {
  return load_model(files, describe_model(files, path), choice, shards);
}

LoadedModel load_model(FileSystem& files, ModelDescription description, const DeviceChoice& choice, ShardGroup* shards) {
  const DeviceChoice resolved = resolve(choice, description.quantized);
  const bool integers = resolved.precision == "int8";
  if (is_spread(shards) && integers)
    throw ConfigError(fmt::format(
        "{}: 8-bit products are not supported with shards, each of which would round by itself; choose --precision f32 or bf16, or "
        "translate with one rank",
        description.directory));
  auto backend = make_backend(resolved);
  auto model = read_model(files, description, *backend, integers, shards);
  if (integers && !description.quantized) quantize_all(*model);
  FoundConfidence confidence = find_confidence(files, description.directory);
  return {std::move(description), std::move(backend), std::move(model), resolved.precision, std::move(confidence)};
}

LoadedModel load_beside(FileSystem& files, const std::string& path, const LoadedModel& first) {
  ModelDescription description = describe_model(files, path);
  if (!same_pieces(first.description.vocabularies.target(), description.vocabularies.target()))
    throw ConfigError(
        fmt::format("{} and {} have different target vocabularies, so their predictions cannot be averaged; an ensemble needs models that "
                    "were trained with one vocabulary: on the same data with the same vocab section and seed",
                    first.description.directory, description.directory));
  const bool integers = first.precision == "int8";
  auto model = read_model(files, description, *first.backend, integers);
  if (integers && !description.quantized) quantize_all(*model);
  return {std::move(description), nullptr, std::move(model), first.precision};
}

std::string machine_text(const Backend& backend, bool int8) {
  return backend.describe() + (int8 && !backend.multiplies_int8() ? ", 8-bit products as floats" : "");
}

}  // namespace starling
