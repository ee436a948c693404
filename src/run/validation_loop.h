// What a run does with its validation text: it measures the model, keeps the best one, and learns when to stop early. Rank 0 compares;
// where all ranks take part, they translate a share each and are told whether the run ends.
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
  // They must live as long as this.
  ValidationLoop(RunParts& run, RunStatus& status) : run_(run), status_(status) {}

  // Reads the validation text, once the vocabularies are there. What auto chose for Japanese stays for the whole run, also where MeCab
  // comes or goes.
  void open();
  // Measures the model as it would be deployed now. Collective as RunDriver says. A signal ends it: then it is owed(), and,
  // where all ranks take part, the run is stopped.
  void validate();

  const ModelSelector& selector() const { return selector_; }
  // Rank 0, at the end of the run: lines about what would give better translations than those of the best model.
  std::vector<std::string> advice() const;
  int64_t validated() const { return validated_; }  // update of the last validation, -1: none yet
  bool owed() const { return owed_; }               // that of the current update was not ended
  void save(State& state) const;
  // What rank 0 thought at a checkpoint. Collective.
  void restore(const State& state);

 private:
  Validator::Result measure(Communicator& comm);
  // fetch: of the weights that this rank does not have.
  void consider(const Validator::Result& result, const FetchWeights& fetch);
  void restore_selector(const State& state);
  void tell_all(bool stopped);

  RunParts& run_;
  RunStatus& status_;
  std::optional<Validator> validator_;
  std::optional<DecodingModel> decoding_;  // where stages translate
  std::optional<BestModel> best_model_;    // of rank 0, once there is one
  std::string validation_;                 // of rank 0: digest of the validation text; "": there is none
  std::string tokenizer_;                  // rank 0: of BLEU and GLEU, as in signatures; "": neither is measured
  ModelSelector selector_{run_.config.valid.metrics, run_.config.valid.deciding_metric(), run_.config.valid.early_stopping};
  double length_ratio_ = -1;  // of the best model's translations; -1: unknown
  int64_t validated_ = -1;
  bool owed_ = false;
};

}  // namespace starling
