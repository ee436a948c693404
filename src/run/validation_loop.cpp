#include "run/validation_loop.h"

#include <algorithm>

#include "base/sha256.h"
#include "parallel/stage_weights.h"

namespace starling {
namespace {

constexpr double kShort = 0.9;     // BLEU loses a tenth by such translations
constexpr double kNothing = 0.05;  // BLEU that is shown as 0.0

}  // namespace

void ValidationLoop::open() {
  const ValidConfig& config = run_.config.valid;
  if (!config.enabled()) return;
  std::string japanese;
  if (run_.directory && run_.directory->state()) {
    const State& s = *run_.directory->state();
    if (s.has("tokenizer") && s.text("tokenize") == "auto") japanese = s.text("tokenizer");
    if (const size_t at = japanese.find("ja-mecab"); at != std::string::npos) japanese = japanese.substr(at);  // among several
  }
  ValidatorRank rank{run_.first(), japanese, run_.ranks_here()};
  rank.screen = run_.progress.screen();
  rank.stop = [this] { return run_.stop_asked(); };
  rank.directory = join_path(run_.config.train.output, "validations");
  rank.step = [this] { return run_.step(); };
  validator_.emplace(config, *run_.vocabularies, rank);
  if (validator_->truncated() > 0) run_.say(fmt::format("validation: {} sentences were cut at 1000 tokens", validator_->truncated()));
  if (run_.first()) {
    std::string texts;
    for (const ValidSet& set : config.texts())
      texts += sha256_file(*run_.files, set.source) + sha256_file(*run_.files, set.target) + set.tag;
    validation_ = sha256_hex(texts);
  }
  tokenizer_ = validator_->tokenizer();
  for (const std::string& line : validator_->notices()) run_.say(line);
}

void ValidationLoop::validate() {
  bool stopped = false;
  unsaved_.clear();
  run_.driver->for_validation([&](Communicator& comm) {
    const Validator::Result result = measure(comm);
    StageWeights weights(*run_.model, *run_.mesh);
    stopped = result.stopped;
    if (run_.first() && !stopped) consider(result, weights.fetch());
    if (run_.first())
      weights.done();
    else if (run_.leads())
      weights.serve();
  });
  if (run_.driver->synchronous()) {
    tell_all(stopped);
    stopped = status_.stopped;
  }
  owed_ = stopped;
  if (!stopped && unsaved_.empty()) validated_ = run_.step();
  if (stopped && run_.first())
    run_.say(fmt::format("the validation of update {} was interrupted; it will be repeated when the run resumes", run_.step()));
}

// Of a model in stages, only the losses can be measured as it is; translating needs all of its layers, of which shards may be anywhere.
Validator::Result ValidationLoop::measure(Communicator& comm) {
  const Mesh& mesh = *run_.mesh;
  const std::string name = fmt::format("validation of update {}", run_.step());
  if (mesh.stages() == 1) return validator_->run(*run_.model, comm, name);
  if (!validator_->translates()) return validator_->run_in_stages(*run_.model, mesh);
  if (!decoding_) decoding_.emplace(*run_.model, mesh);
  const auto model = decoding_->make();
  return model ? validator_->run(*model, comm, name) : Validator::Result{};
}

// Rank 0: is it the best so far, and has it been for too long?
void ValidationLoop::consider(const Validator::Result& result, const FetchWeights& fetch) {
  const ValidConfig& config = run_.config.valid;
  const int64_t known = selector_.best_step();
  const ModelSelector before = selector_;
  ModelSelector::Verdict verdict = selector_.consider(run_.step(), result.scores);
  if (verdict.best) {
    length_ratio_ = result.length_ratio;
    run_.directory->require_owned();
    if (!best_model_) {
      const std::string metric = config.deciding_metric();
      best_model_.emplace(*run_.files, run_.config.train.output, metric, validation_ + (is_tokenized(metric) ? " " + tokenizer_ : ""),
                          run_.say);
    }
    try {
      best_model_->save(
          run_.directory->checkpoints(), run_.step(), selector_.best(), known,
          model_parts(*run_.model, run_.model->config(), run_.config.languages, *run_.vocabularies, config.search, run_.step(), fetch));
    } catch (const IoError& e) {  // a full disk: the next model that is better than the one that is there is saved again
      selector_ = before;
      verdict = {};
      unsaved_ = e.what();
      run_.say(
          fmt::format("warning: the best model so far, of update {}, cannot be saved: {}; best/ stays as it is, and this validation "
                      "does not count",
                      run_.step(), e.what()));
    }
  }
  status_.early_stopped = selector_.stops();
  run_.progress.validation({.step = run_.step(),
                            .epoch = status_.epoch,
                            .scores = result.scores,
                            .by_text = result.by_text,
                            .metric = config.deciding_metric(),
                            .best = verdict.best,
                            .by = verdict.by,
                            .stalled = selector_.stalled(),
                            .seconds = result.seconds,
                            .tokenizer = tokenizer_,
                            .length_ratio = result.length_ratio,
                            .example = result.example});
  for (const std::string& message : verdict.messages) run_.say(message);
  for (const std::string& complaint : result.complaints) run_.say(complaint);
}

std::vector<std::string> ValidationLoop::advice() const {
  std::vector<std::string> lines;
  if (const std::string advice = selector_.advice(); !advice.empty()) lines.push_back(advice);
  const ValidSet text = run_.config.valid.enabled() ? run_.config.valid.texts().front() : ValidSet();
  if (length_ratio_ >= 0 && length_ratio_ < kShort && selector_.score_of_best("bleu") < kNothing)
    lines.push_back(
        fmt::format("the best model's translations of the validation set are short, {:.2f} of their references' words, and its BLEU is 0: "
                    "it has learned too little to translate yet, and no penalties can change that; train longer, or on more text",
                    length_ratio_));
  else if (length_ratio_ >= 0 && length_ratio_ < kShort)
    lines.push_back(fmt::format(
        "the best model's translations of the validation set are short, {:.2f} of their references' words; to search for better "
        "penalties: starling tune-search --model {} --source {} --target {}{} --length-penalties 0.6,1,1.5,2 --coverage-penalties 0,0.2",
        length_ratio_, run_.config.train.output, text.source, text.target,
        language_tags(run_.config.languages).empty() ? "" : " --target-language " + text.target_language));
  return lines;
}

void ValidationLoop::require_best_saved() const {
  if (unsaved_.empty()) return;
  if (!run_.first()) run_.comm().barrier().wait(kNoDeadline);  // rank 0 reports it, and ends the others
  throw IoError(fmt::format("the best model, of update {}, cannot be saved: {}; the same command tries it again", run_.step(), unsaved_));
}

// Sends what rank 0 knows to all ranks.
void ValidationLoop::tell_all(bool stopped) {
  const std::string text = broadcast_text(run_.comm(), (stopped ? "s" : status_.early_stopped ? "e" : "-") + unsaved_);
  if (text[0] == 's') status_.stopped = true;
  status_.early_stopped = text[0] == 'e';
  unsaved_ = text.substr(1);
}

void ValidationLoop::save(State& s) const {
  selector_.save(s);
  s.put("tokenize", run_.config.valid.tokenize);
  s.put("tokenizer", tokenizer_);
  s.put("validation", validation_);
  s.put("length-ratio", length_ratio_);
  s.put("validated", validated_);
  s.put("validation-owed", int64_t{owed_});
}

void ValidationLoop::restore(const State& s) {
  if (run_.first()) {
    restore_selector(s);
    status_.early_stopped = selector_.stops();
  }
  tell_all(false);
  validated_ = s.integer("validated");
  owed_ = run_.config.valid.enabled() && s.has("validation-owed") && s.integer("validation-owed") != 0;
}

void ValidationLoop::restore_selector(const State& s) {
  const std::vector<std::string>& metrics = run_.config.valid.metrics;
  const std::string before = s.has("tokenizer") ? s.text("tokenizer") : "13a";  // the only one of older versions
  std::vector<std::string> otherwise;
  if (!before.empty() && !tokenizer_.empty() && before != tokenizer_) {
    std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(otherwise), is_tokenized);
    run_.say(fmt::format("the tokenizer of {} has changed from {} to {}; earlier scores are discarded", fmt::join(otherwise, ", "), before,
                         tokenizer_));
  }
  if (s.has("validation") && !s.text("validation").empty() && !validation_.empty() && s.text("validation") != validation_) {
    otherwise = metrics;
    run_.say("the validation text has changed; earlier scores are discarded");
  }
  selector_.restore(s, otherwise);
  const bool measured = std::find(metrics.begin(), metrics.end(), "bleu") != metrics.end();
  if (selector_.has_best() && measured && s.has("length-ratio")) length_ratio_ = s.real("length-ratio");
}

}  // namespace starling
