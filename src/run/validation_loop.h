// Validates the model of a run, keeps the best one, and decides early stopping. Rank 0 compares scores; where all ranks take part, each
// translates a share of the text and learns whether the run ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evaluation/best_model.h"
#include "evaluation/model_selector.h"
#include "evaluation/validation.h"
#include "parallel/decoding_model.h"
#include "run/run_parts.h"
#include "storage/state.h"

namespace starling {

class ValidationLoop {
 public:
  // The arguments must outlive this.
  ValidationLoop(RunParts& run, RunStatus& status) : run_(run), status_(status) {}

  // Reads the validation text; the vocabularies must exist. The tokenizer that `auto` chose for Japanese is kept for the whole run, even if
  // MeCab is installed or removed during the run.
  void open();
  // Measures the model as it would be deployed now. Collective as RunDriver says. A signal interrupts it: then it is owed(), and the run is
  // stopped where all ranks take part.
  void validate();

  const ModelSelector& selector() const { return selector_; }
  // On rank 0 at the end of the run: returns lines of advice on how to get better translations than the best model's.
  std::vector<std::string> advice() const;
  // The update of the last validation whose result counts; -1: none yet.
  int64_t validated() const { return validated_; }
  // Throws IoError if the last validation was of the best model, which could not be saved: the run would leave an older one.
  void require_best_saved() const;
  bool owed() const { return owed_; }  // the current update's validation was interrupted
  void save(State& state) const;
  // Restores from a checkpoint what rank 0 knew then. Collective.
  void restore(const State& state);

 private:
  Validator::Result measure(Communicator& comm);
  // fetch: gets the weights that this rank does not have.
  void consider(const Validator::Result& result, const FetchWeights& fetch);
  void restore_selector(const State& state);
  void tell_all(bool stopped);

  RunParts& run_;
  RunStatus& status_;
  std::optional<Validator> validator_;
  std::optional<DecodingModel> decoding_;  // where stages translate
  std::optional<BestModel> best_model_;    // on rank 0, once there is one
  std::string validation_;                 // rank 0: digest of the validation text; "": there is none
  std::string tokenizer_;                  // rank 0: of BLEU and GLEU, as in signatures; "": neither is measured
  ModelSelector selector_{run_.config.valid.metrics, run_.config.valid.deciding_metric(), run_.config.valid.early_stopping};
  double length_ratio_ = -1;  // of the best model's translations; -1: unknown
  int64_t validated_ = -1;
  std::string unsaved_;  // why the best model of the last validation could not be saved; "": it could, or was not the best
  bool owed_ = false;
};

}  // namespace starling
