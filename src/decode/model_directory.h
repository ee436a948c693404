// A model directory is self-contained: it holds the architecture (config.yml), the vocabulary, the weights (safetensors), the search
// settings (decode.yml) and a note for people. Checkpoints are model directories with the state of training added, so each of them can
// translate.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/device_choice.h"
#include "decode/beam_search.h"
#include "decode/confidence.h"
#include "models/model.h"
#include "storage/checkpoint.h"
#include "text/languages.h"
#include "text/vocabulary.h"

namespace starling {

// The two vocabularies; if they are joint, target() is source().
class Vocabularies {
 public:
  Vocabularies(Vocabulary source, std::optional<Vocabulary> target) : source_(std::move(source)), target_(std::move(target)) {}
  const Vocabulary& source() const { return source_; }
  const Vocabulary& target() const { return target_ ? *target_ : source_; }
  bool joint() const { return !target_.has_value(); }
  ModelVocabulary sizes() const {
    return {source().size(), target().size(), target().bos(), target().eos(), target().unk(), target().pad()};
  }

 private:
  Vocabulary source_;
  std::optional<Vocabulary> target_;
};

// Writes the f32 values of a parameter that this part of a model does not hold.
using FetchWeights = std::function<void(const Parameter&, ByteSink&)>;

// Returns the parts of a model directory. Weights are written from the model's memory, so the model must live until then; those with
// Parameter::quantized are written as 8-bit integers. For a part of a model, weights that it does not own are fetched when they are due.
std::vector<Part> model_parts(Model& model, const ModelConfig& config, const Languages& languages, const Vocabularies& vocabularies,
                              const SearchOptions& search, int64_t step, const FetchWeights& fetch = {});

// The parts of model_parts() other than the weights.
std::vector<Part> description_parts(const ModelConfig& config, const Languages& languages, const Vocabularies& vocabularies,
                                    const SearchOptions& search, int64_t step, bool quantized);

// Returns decode.yml, which is one of them.
Part search_part(const SearchOptions& search);

// Copies the weights of a file into the parameters. Throws DataError naming file and tensor if names or shapes differ or an element is NaN
// or infinite. 8-bit weights become the numbers that they represent; with keep_integers, products use the integers, otherwise everything is
// as with f32 weights.
void load_weights(FileSystem& files, const std::string& path, ParameterStore& parameters, bool keep_integers = false);

// A model directory without its weights. `path` may be a run directory (its best checkpoint is used, else the latest), a checkpoint or any
// copy of one. Throws ConfigError if it is none of these, and DataError if its files differ from its manifest.
struct ModelDescription {
  std::string directory;
  ModelConfig config;
  SearchOptions search;
  Vocabularies vocabularies;
  bool quantized = false;  // some weights are 8-bit integers
  int64_t step = 0;        // updates of training
  Languages languages;     // unknown for models of older versions
};
ModelDescription describe_model(FileSystem& files, const std::string& path);
// Reads the description of a directory without checking its files against the manifest, for a directory that has been verified or is only
// inspected.
ModelDescription read_description(FileSystem& files, const std::string& directory);

// A model that is ready to translate.
struct LoadedModel {
  ModelDescription description;
  std::unique_ptr<Backend> backend;  // the model's own backend, if any
  std::unique_ptr<Model> model;
  std::string precision;  // the precision requested or resolved from "auto"; empty with an external backend
  FoundConfidence confidence = {};
};
// Loads a model on an external backend, which must outlive it. 8-bit weights become floats.
LoadedModel load_model(FileSystem& files, const std::string& path, Backend& backend);
// Loads a model on a backend of its own. Precision "int8" quantises all matrices, or, if the model is quantised already, uses the integers
// of its directory. Throws ConfigError for unknown devices or precisions. With `shards`, loads this worker's shard of the model, which is
// not quantised then.
LoadedModel load_model(FileSystem& files, const std::string& path, const DeviceChoice& choice, ShardGroup* shards = nullptr);
// Loads a directory that was described before, even if the run's best checkpoint has changed since.
LoadedModel load_model(FileSystem& files, ModelDescription description, const DeviceChoice& choice, ShardGroup* shards = nullptr);

// Loads a further model of an ensemble on the backend of the first, which must outlive it, and with the first one's precision. Throws
// ConfigError unless both have the same target vocabulary.
LoadedModel load_beside(FileSystem& files, const std::string& path, const LoadedModel& first);

// Describes for reports what computes: the backend, and whether it computes 8-bit products, if there are any, as floats.
std::string machine_text(const Backend& backend, bool int8);

}  // namespace starling
