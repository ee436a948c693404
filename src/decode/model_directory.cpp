#include "decode/model_directory.h"

#include <cstring>

#include "base/config.h"

namespace starling {
namespace {

constexpr const char* kWeights = "model.safetensors";

struct Identity {  // the part of config.yml that visit(ModelConfig) leaves out
  std::string preset;
  int64_t step = 0;
};
template <class Visitor>
void visit(Visitor& v, Identity& c) {
  v.field("preset", c.preset, "preset that the model section started from");
  v.field("step", c.step, "updates of training", 0, int64_t{1} << 60);
}

std::string config_text(const ModelConfig& config, int64_t step) {
  ModelConfig model = config;
  Identity identity{config.preset, step};
  const std::vector<ConfigSection> sections{config_section("about", "", identity), config_section("model", "", model)};
  return write_config(sections, {.comments = true});
}

constexpr const char* kAbout =
    "This directory is a translation model trained by Starling.\n"
    "\n"
    "  config.yml          architecture of the model\n"
    "  decode.yml          how it decodes unless the command line says otherwise; as in its validation, or as\n"
    "                      starling tune-search found best (search.json)\n"
    "  vocab.spm           SentencePiece vocabulary of both languages (or source.spm and target.spm)\n"
    "  model.safetensors   weights, f32\n"
    "  manifest.json       sizes and SHA-256 hashes of all files\n"
    "A checkpoint also has the state of training: state.json and training.safetensors.\n"
    "\n"
    "Translate raw text with:  starling translate --model THIS_DIRECTORY < input.txt\n";

}  // namespace

Part search_part(const SearchOptions& search) {
  SearchOptions options = search;
  const std::vector<ConfigSection> sections{config_section("decode", "", options)};
  return text_part("decode.yml", write_config(sections, {.comments = true}));
}

std::vector<Part> model_parts(Model& model, const ModelConfig& config, const Vocabularies& vocabularies, const SearchOptions& search,
                              int64_t step) {
  std::vector<NamedBytes> tensors;
  for (Parameter& p : model.parameters().all()) {
    std::vector<int64_t> shape;
    for (int i = 0; i < p.shape.rank(); ++i) shape.push_back(p.shape[i]);
    tensors.push_back({p.name, "F32", shape, {p.value.raw(), static_cast<size_t>(p.value.bytes())}});
  }
  std::vector<Part> parts;
  parts.push_back(text_part("about.txt", kAbout));
  parts.push_back(text_part("config.yml", config_text(config, step)));
  parts.push_back(search_part(search));
  if (vocabularies.joint()) {
    parts.push_back(text_part("vocab.spm", vocabularies.source().bytes()));
  } else {
    parts.push_back(text_part("source.spm", vocabularies.source().bytes()));
    parts.push_back(text_part("target.spm", vocabularies.target().bytes()));
  }
  parts.push_back(safetensors_part(kWeights, std::move(tensors), {{"format", "starling"}, {"step", std::to_string(step)}}));
  return parts;
}

void load_weights(FileSystem& files, const std::string& path, ParameterStore& parameters) {
  const SafetensorsFile file(files, path);
  for (Parameter& p : parameters.all()) {
    const NamedBytes& tensor = file.at(p.name);
    std::vector<int64_t> shape;
    for (int i = 0; i < p.shape.rank(); ++i) shape.push_back(p.shape[i]);
    if (tensor.dtype != "F32" || tensor.shape != shape)
      throw DataError(fmt::format("{}: tensor {} is {} [{}], but config.yml asks for F32 {}; the files do not belong together", path,
                                  p.name, tensor.dtype, fmt::join(tensor.shape, ", "), p.shape.text()));
    if (p.value.dtype() == DType::f32) {
      std::memcpy(p.value.raw(), tensor.data.data(), tensor.data.size());
    } else {
      std::vector<float> values(p.shape.count());
      std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
      p.value.from_doubles(std::vector<double>(values.begin(), values.end()));
    }
  }
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
                      "train.output of a run or a directory below it{}",
                      path, kWeights, damaged));
    }
  } else if (files.exists(join_path(directory, "manifest.json"))) {
    verify_directory(files, directory);  // a damaged copy must not translate with other settings than it was made with
  }
  const auto file = [&](const char* name) { return join_path(directory, name); };
  ModelConfig config;
  Identity identity;
  {
    const std::vector<ConfigSection> sections{config_section("about", "", identity), config_section("model", "", config)};
    ConfigDocument(read_text_file(file("config.yml")), file("config.yml")).read(sections);
    config.preset = identity.preset;
  }
  SearchOptions search;
  {
    const std::vector<ConfigSection> sections{config_section("decode", "", search)};
    ConfigDocument(read_text_file(file("decode.yml")), file("decode.yml")).read(sections);
  }
  if (files.exists(file("vocab.spm"))) return {directory, config, search, {Vocabulary::load(file("vocab.spm")), std::nullopt}};
  return {directory, config, search, {Vocabulary::load(file("source.spm")), Vocabulary::load(file("target.spm"))}};
}

LoadedModel load_model(FileSystem& files, const std::string& path, Backend& backend) {
  ModelDescription description = describe_model(files, path);
  auto model = make_model(description.config, description.vocabularies.sizes(), backend, std::nullopt, false);
  load_weights(files, join_path(description.directory, kWeights), model->parameters());
  return {std::move(description), std::move(model)};
}

std::unique_ptr<Backend> backend_for_precision(const std::string& precision, int threads) {
  if (precision == "auto") return make_backend(cpu_has_bf16() ? "cpu:bf16" : "cpu:f32", threads);
  if (precision == "bf16" || precision == "f32") return make_backend("cpu:" + precision, threads);
  throw ConfigError(fmt::format("there is no precision '{}'; choose auto, bf16 or f32", precision));
}

}  // namespace starling
