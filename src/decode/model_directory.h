// A model directory explains itself: what the model is (config.yml), its vocabulary, its weights (safetensors), how it decodes
// (decode.yml) and a note for people. Checkpoints are model directories with the state of training beside, so each one translates.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device_choice.h"
#include "decode/beam_search.h"
#include "models/model.h"
#include "storage/checkpoint.h"
#include "text/languages.h"
#include "text/vocabulary.h"

namespace starling {

// The two vocabularies; target is source when they are joint.
class Vocabularies {
 public:
  Vocabularies(Vocabulary source, std::optional<Vocabulary> target) : source_(std::move(source)), target_(std::move(target)) {}
  const Vocabulary& source() const { return source_; }
  const Vocabulary& target() const { return target_ ? *target_ : source_; }
  bool joint() const { return !target_.has_value(); }
  ModelVocabulary sizes() const { return {source().size(), target().size(), target().bos(), target().eos(), target().unk()}; }

 private:
  Vocabulary source_;
  std::optional<Vocabulary> target_;
};

// Writes the values of a parameter that a part of a model does not have, f32.
using FetchWeights = std::function<void(const Parameter&, ByteSink&)>;

// The parts of a model directory. The weights are written from where they lie, so the model must live until then; those of
// Parameter::quantized as 8-bit integers. Of a part of a model, what it does not own is fetched when its turn has come.
std::vector<Part> model_parts(Model& model, const ModelConfig& config, const Languages& languages, const Vocabularies& vocabularies,
                              const SearchOptions& search, int64_t step, const FetchWeights& fetch = {});

// decode.yml, which is one of them.
Part search_part(const SearchOptions& search);

// Copies the weights of a file into the parameters; DataError naming file and tensor when names or shapes differ or an element is NaN or
// infinite. 8-bit weights become the numbers they stand for; with keep_integers their products are those of the integers, else all is as
// with f32 weights.
void load_weights(FileSystem& files, const std::string& path, ParameterStore& parameters, bool keep_integers = false);

// A model directory without its weights. `path` may be a run directory (its best checkpoint is taken, else the latest), a checkpoint
// or any copy of one; ConfigError when it is none of these, DataError when its files differ from its manifest.
struct ModelDescription {
  std::string directory;
  ModelConfig config;
  SearchOptions search;
  Vocabularies vocabularies;
  bool quantized = false;  // some weights are 8-bit integers
  int64_t step = 0;        // updates of training
  Languages languages;     // unknown in models of older versions
};
ModelDescription describe_model(FileSystem& files, const std::string& path);
// Of the directory itself, without comparing its files with the manifest: for one that was verified, or to look what it is.
ModelDescription read_description(FileSystem& files, const std::string& directory);

// Ready to translate.
struct LoadedModel {
  ModelDescription description;
  std::unique_ptr<Backend> backend;  // the model's own, if any
  std::unique_ptr<Model> model;
  std::string precision;  // what was asked for or "auto" came to; empty with another's backend
};
// With another's backend, which must outlive the model. 8-bit weights become floats.
LoadedModel load_model(FileSystem& files, const std::string& path, Backend& backend);
// With a backend of its own. Precision "int8" makes integers of all matrices, unless the model is quantised already: then of those that its
// directory has as integers. ConfigError for words that are no device or precision.
// With shards: this worker's of the model, which is not quantised then.
LoadedModel load_model(FileSystem& files, const std::string& path, const DeviceChoice& choice, ShardGroup* shards = nullptr);
// The same of a directory that was described before, whatever has become of the run's best checkpoint since.
LoadedModel load_model(FileSystem& files, ModelDescription description, const DeviceChoice& choice, ShardGroup* shards = nullptr);

// What computes, for reports: the backend, and whether 8-bit products, if there are any, are floats to it.
std::string machine_text(const Backend& backend, bool int8);

}  // namespace starling
