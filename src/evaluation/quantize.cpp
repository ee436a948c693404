#include "evaluation/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "backend/profiled.h"
#include "base/stop_note.h"
#include "data/batches.h"
#include "decode/framing.h"
#include "decode/quantization.h"
#include "decode/translator.h"
#include "evaluation/text_roles.h"
#include "evaluation/validation.h"
#include "storage/outputs.h"

namespace starling {
namespace {

constexpr size_t kLongestTranslated = 1000;  // source tokens translated, as read_sentences cuts them
constexpr int64_t kBatchTokens = 4000;       // target tokens computed at once
constexpr size_t kWarmUp = 500;              // sentences translated before timing starts

// How the model translates the sample.
SearchOptions search_of(const QuantizeOptions& o, const ModelDescription& model) {
  SearchOptions search = with_prefixes(into_language(model.search, model, o.target_language), model.vocabularies);
  if (o.beam > 0) search.beam = o.beam;
  search.n_best = 1;
  return search;
}

ParallelSentences read_sample(const QuantizeOptions& o, const Vocabularies& vocabularies, const SearchOptions& search) {
  ParallelSentences sample = read_sentences(o.source, o.target, vocabularies, search.source_prefix_ids);
  if (sample.pairs.empty()) throw DataError(fmt::format("{}: no sentences to measure on; give another file with --source", o.source));
  return sample;
}

// Returns "run/best" for "best" in "run"; for a model directory, its own name.
std::string model_name(std::string asked, const std::string& directory) {
  while (asked.size() > 1 && asked.back() == '/') asked.pop_back();
  const bool below = directory.size() > asked.size() && directory.compare(0, asked.size() + 1, asked + "/") == 0;
  return file_name(asked) + (below ? directory.substr(asked.size()) : "");
}

// Returns at most `most` of the elements, evenly spread.
template <class T>
std::vector<T> spread(const std::vector<T>& all, size_t most) {
  const size_t count = std::min(all.size(), most);
  std::vector<T> some;
  for (size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

// Observes the inputs of matrix products and forwards the operations to another backend. Rows of zeros are padding and are not counted, nor
// are the rows of a recurrent product that its LSTM step does not read: they only keep the number of distinct shapes small, and their
// content is arbitrary.
class ObservingBackend : public ProfiledBackend {
 public:
  using ProfiledBackend::ProfiledBackend;
  struct Inputs {
    double bound = 0, magnitudes = 0;
    int64_t count = 0, beyond = 0;
  };
  std::map<const Packed*, Inputs> inputs;  // by the weights to observe, with their bounds

  void linear(const Tensor& x, const Packed& w, const Tensor& b, const Tensor& y, Activation a, Write write) override {
    finish();
    if (const auto found = inputs.find(&w); found != inputs.end()) {
      look(x, found->second);
      result_ = y;
    }
    ProfiledBackend::linear(x, w, b, y, a, write);
  }
  void lstm_step(const LstmStep& step) override {
    if (step.recurrent && step.recurrent.starts_with(result_)) finish(step.past);
    ProfiledBackend::lstm_step(step);
  }
  // Adds the last product's inputs to the totals; must also be called at the end.
  void finish(int64_t rows = std::numeric_limits<int64_t>::max()) {
    for (size_t r = 0; to_ && r < rows_.size() && static_cast<int64_t>(r) < rows; ++r) {
      if (rows_[r].magnitudes == 0) continue;
      to_->magnitudes += rows_[r].magnitudes;
      to_->beyond += rows_[r].beyond;
      to_->count += rows_[r].count;
    }
    to_ = nullptr;
    result_ = {};
  }

 private:
  void look(const Tensor& x, Inputs& to) {
    rows_.assign(static_cast<size_t>(x.rows()), {});
    const double bound = to.bound * (1 + 1e-6);  // clipping rounds the bound to f32
    int64_t at = 0;
    for (const double value : x.to_doubles()) {
      Inputs& row = rows_[static_cast<size_t>(at++ / x.columns())];
      row.magnitudes += std::abs(value);
      row.beyond += std::abs(value) > bound;
      ++row.count;
    }
    to_ = &to;
  }
  std::vector<Inputs> rows_;  // by row, for the last product observed
  Inputs* to_ = nullptr;
  Tensor result_;
};

// The model with copies of its original matrices, to switch between integers and floats.
class Candidate {
 public:
  explicit Candidate(Model& model) : model_(model), matrices_(quantizable_matrices(model)) {
    for (const QuantizableMatrix& m : matrices_) originals_.push_back(m.parameter->value.clone());
  }
  Model& model() { return model_; }
  size_t count() const { return matrices_.size(); }
  Parameter& parameter(size_t i) const { return *matrices_[i].parameter; }
  void use_integers(size_t i) { quantize(matrices_[i]); }
  void use_floats(size_t i) {
    parameter(i).value.copy_from(originals_[i]);
    set_quantized(parameter(i), false);
  }

 private:
  Model& model_;
  std::vector<QuantizableMatrix> matrices_;
  std::vector<Tensor> originals_;
};

class Quantizer {
 public:
  Quantizer(FileSystem& files, const QuantizeOptions& options, ModelDescription description,
            const std::function<void(const std::string&)>& progress, const TaskScreen& screen)
      : files_(files),
        o_(options),
        progress_(progress),
        screen_(screen),
        loaded_(load_model(files, std::move(description), {"f32", options.threads, options.device})),
        search_(search_of(options, loaded_.description)),
        sample_(read_sample(options, loaded_.description.vocabularies, search_)),
        batches_(make_batches(sample_.pairs, kBatchTokens)),
        part_(make_batches(spread(sample_.pairs, static_cast<size_t>(options.matrix_sentences)), kBatchTokens)),
        candidate_(*loaded_.model) {
    result_.machine = machine_text(*loaded_.backend, true);
    result_.model = model_name(o_.model, loaded_.description.directory);
    result_.step = loaded_.description.step;
    result_.truncated = sample_.truncated;
    result_.source = file_name(o_.source);
    result_.target = file_name(o_.target);
    result_.sentences = static_cast<int64_t>(sample_.pairs.size());
    result_.beam = search_.beam;
    const TokenizerChoice choice = choose_tokenizer(o_.tokenize, {&sample_.references, 1});
    evaluation_.tokenizer = choice.tokenizer;
    result_.tokenizer = choice.tokenizer.name();
    if (!choice.notice().empty()) progress_(choice.notice());
    const std::string doubt = doubt_about_sides(*loaded_.model, loaded_.description.vocabularies, o_.source, o_.target, sample_.sources,
                                                sample_.references, search_.source_prefix_ids);
    if (!doubt.empty()) progress_("starling: warning: " + doubt);
  }

  QuantizeResult run(const std::function<void(const QuantizeResult&)>& measured) {
    probe();
    result_.scores.push_back(scores("f32", *loaded_.model, &float_hypotheses_));
    if (!std::isfinite(result_.scores.back().log_perplexity))
      throw DataError(
          fmt::format("{}: the float model's log-perplexity on {} is {}, so there is nothing to compare with; use another checkpoint",
                      loaded_.description.directory, o_.source, result_.scores.back().log_perplexity));
    if (cpu_has_bf16()) {
      const LoadedModel narrow = load_model(files_, loaded_.description.directory, {"bf16", o_.threads, o_.device});
      result_.scores.push_back(scores("bf16", *narrow.model, nullptr));
    }
    measure_matrices();
    for (size_t i = 0; i < candidate_.count(); ++i) candidate_.use_integers(i);
    result_.scores.push_back(scores("int8", *loaded_.model, &hypotheses_));
    if (!within(result_.scores.back())) choose_floats();
    result_.within_bounds = within(result_.scores.back());
    const References references(&sample_.references, 1);
    result_.bleu_difference = difference_interval(count_metric("bleu", hypotheses_, references, evaluation_),
                                                  count_metric("bleu", float_hypotheses_, references, evaluation_));
    for (size_t i = 0; i < candidate_.count(); ++i) result_.matrices[i].quantized = candidate_.parameter(i).quantized;
    observe_inputs();
    if (measured) measured(result_);
    if (result_.within_bounds || o_.force) write();
    return result_;
  }

 private:
  PrecisionScores scores(const std::string& name, Model& model, std::vector<std::string>* hypotheses) {
    progress_(fmt::format("measuring {}", name));
    PrecisionScores s{.name = name};
    TaskProgress progress(name, screen_);
    const auto tell = [&](double share, const char* what) {
      if (progress.due()) progress.tell(share, what);
      return true;
    };
    constexpr double kEntropy = 0.1;  // approximate share of the time
    const CrossEntropy entropy = cross_entropy(model, batches_, 0, 1, [&](double done) { return tell(kEntropy * done, "log-perplexity"); });
    s.log_perplexity = entropy.per_token();
    result_.target_tokens = entropy.tokens;
    Translator translator(model, loaded_.description.vocabularies, search_, o_.batch_sentences, kLongestTranslated);
    const std::vector<std::string> some = spread(sample_.sources, kWarmUp);
    const double warm_up = (1 - kEntropy) * static_cast<double>(some.size()) / static_cast<double>(some.size() + sample_.sources.size());
    translator.set_watch({.stop = {}, .translated = [&](double done) { tell(kEntropy + warm_up * done, "warming up"); }});
    translator.translate(some);  // generates the code for most shapes of matrix products
    translator.set_watch(
        {.stop = {}, .translated = [&](double done) { tell(kEntropy + warm_up + (1 - kEntropy - warm_up) * done, "translating"); }});
    const int64_t before = translator.output_tokens();
    const double start = steady_seconds();
    std::vector<std::string> translations;
    for (auto& n_best : translator.translate(sample_.sources)) translations.push_back(std::move(n_best.front().text));
    s.tokens_per_second = static_cast<double>(translator.output_tokens() - before) / (steady_seconds() - start);
    s.bleu = evaluate("bleu", translations, {&sample_.references, 1}, evaluation_).score;
    if (hypotheses) *hypotheses = std::move(translations);
    return s;
  }

  double entropy_loss(const PrecisionScores& s) const { return s.log_perplexity - result_.scores.front().log_perplexity; }
  bool within(const PrecisionScores& s) const {
    return entropy_loss(s) <= o_.max_log_perplexity_loss && result_.scores.front().bleu - s.bleu <= o_.max_bleu_loss;
  }

  // Measures what each matrix costs if only that matrix is integers.
  void measure_matrices() {
    progress_(fmt::format("measuring {} matrices one by one on {} sentences", candidate_.count(),
                          std::min<int64_t>(o_.matrix_sentences, result_.sentences)));
    const double floats = cross_entropy(candidate_.model(), part_).per_token();
    TaskProgress progress("one by one", screen_);
    for (size_t i = 0; i < candidate_.count(); ++i) {
      if (progress.due()) progress.count(static_cast<int64_t>(i), static_cast<int64_t>(candidate_.count()), "matrices");
      candidate_.use_integers(i);
      double cost = cross_entropy(candidate_.model(), part_).per_token() - floats;
      if (std::isnan(cost)) cost = std::numeric_limits<double>::infinity();  // no matrix is worse than one that yields NaN
      candidate_.use_floats(i);
      const Parameter& p = candidate_.parameter(i);
      result_.matrices.push_back({.name = p.name, .shape = p.shape, .cost = cost, .input_bound = p.input_bound});
    }
  }

  // Turns the most costly matrices back into floats until the bounds hold or one is left. The costs of single matrices add up only
  // approximately, so each choice is measured.
  void choose_floats() {
    const PrecisionScores all = result_.scores.back();
    const std::vector<std::string> all_hypotheses = hypotheses_;
    PrecisionScores now = all;
    result_.scores.back().name = "int8, all";
    std::vector<size_t> worst(candidate_.count());
    for (size_t i = 0; i < worst.size(); ++i) worst[i] = i;
    std::stable_sort(worst.begin(), worst.end(), [&](size_t a, size_t b) { return result_.matrices[a].cost > result_.matrices[b].cost; });
    size_t floats = 0;
    std::vector<double> costs;
    for (size_t i : worst) costs.push_back(result_.matrices[i].cost);
    while (!within(now) && floats + 1 < worst.size()) {
      for (size_t n = floats_of_step(std::span(costs).subspan(floats), entropy_loss(now) - o_.max_log_perplexity_loss); n > 0; --n)
        candidate_.use_floats(worst[floats++]);
      now = scores(fmt::format("int8 with {} of {} matrices as floats", floats, worst.size()), *loaded_.model, &hypotheses_);
    }
    if (!within(now)) {
      for (size_t i = 0; i < candidate_.count(); ++i) candidate_.use_integers(i);
      now = all;
      hypotheses_ = all_hypotheses;
      result_.scores.pop_back();
    }
    now.name = "int8";
    result_.scores.push_back(now);
  }

  void observe_inputs() {
    ObservingBackend observer(*loaded_.backend);
    const auto view = share_model(*loaded_.model, observer);
    cross_entropy(*view, spread(part_, 1));  // packs the weights in use
    std::map<const Packed*, MatrixReport*> reports;
    for (MatrixReport& report : result_.matrices) {
      if (report.input_bound == 0 || !report.quantized) continue;
      for (const auto& form : view->parameters().find(report.name)->packed->form)
        if (form) reports[form.get()] = &report, observer.inputs[form.get()].bound = report.input_bound;
    }
    if (reports.empty()) return;
    cross_entropy(*view, part_);
    observer.finish();
    for (const auto& [packed, in] : observer.inputs) {
      if (in.count == 0) continue;
      MatrixReport& report = *reports[packed];
      report.utilisation = in.magnitudes / static_cast<double>(in.count) / in.bound;
      report.saturated = static_cast<double>(in.beyond) / static_cast<double>(in.count);
    }
  }

  // Checks before hours of measuring that the directory can be created. Removes it again, since the measurements may end without a result.
  void probe() {
    std::vector<std::string> made{o_.output + ".probe"};
    for (std::string path = parent_path(o_.output); !files_.exists(path); path = parent_path(path)) made.push_back(path);
    files_.make_directories(parent_path(o_.output));
    if (!files_.make_directory(made.front())) made.erase(made.begin());
    for (const std::string& path : made) files_.remove(path);
  }

  void write() {
    progress_("writing " + o_.output);
    const ModelDescription& d = loaded_.description;
    result_.written = true;
    WholeWrite whole;
    files_.make_directories(parent_path(o_.output));
    std::vector<Part> parts = model_parts(*loaded_.model, d.config, d.languages, d.vocabularies, d.search, d.step);
    if (const auto& confidence = loaded_.confidence.model)  // 8-bit weights change log-probabilities too little to matter to it
      parts.push_back(confidence_part(*confidence, model_digest(files_, join_path(d.directory, "model.safetensors"))));
    parts.push_back(text_part("quantization.json", quantization_report(o_, result_).dump(2) + "\n"));
    publish_directory(files_, o_.output, d.step, parts);
    whole.done(o_.output + " is complete");
  }

  FileSystem& files_;
  const QuantizeOptions& o_;
  const std::function<void(const std::string&)>& progress_;
  const TaskScreen& screen_;
  LoadedModel loaded_;
  SearchOptions search_;
  ParallelSentences sample_;
  std::vector<Batch> batches_, part_;
  Candidate candidate_;
  EvaluateOptions evaluation_;
  std::vector<std::string> float_hypotheses_, hypotheses_;
  QuantizeResult result_;
};

}  // namespace

size_t floats_of_step(std::span<const double> costs, double excess) {
  if (excess <= 0 || costs.front() <= 0) return std::max<size_t>(1, costs.size() / 8);
  const size_t most = std::max<size_t>(1, costs.size() / 2);
  size_t n = 0;
  for (; n < most && excess > 0 && costs[n] > 0; ++n) excess -= costs[n];
  return std::max<size_t>(n, 1);  // at least 1 even if the excess is NaN
}

QuantizeResult quantize_model(FileSystem& files, const QuantizeOptions& options, const std::function<void(const std::string&)>& progress,
                              const std::function<void(const QuantizeResult&)>& measured, const TaskScreen& screen) {
  if (files.exists(options.output))
    throw ConfigError(fmt::format("{}: exists already; give --output a new name or remove it", options.output));
  refuse_run_files({"--output", options.output});
  ModelDescription description = describe_model(files, options.model);
  refuse_own_input({"--output", options.output}, {{"--model", description.directory}});
  if (description.quantized)
    throw ConfigError(fmt::format("{}: is quantised already; quantise the model that it was made from", options.model));
  return Quantizer(files, options, std::move(description), progress, screen).run(measured);
}

nlohmann::ordered_json quantization_report(const QuantizeOptions& o, const QuantizeResult& r) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson scores = OrderedJson::array(), matrices = OrderedJson::array();
  for (const PrecisionScores& s : r.scores)
    scores.push_back({{"precision", s.name},
                      {"bleu", s.bleu},
                      {"log_perplexity", s.log_perplexity},
                      {"tokens_per_second", s.tokens_per_second},
                      {"speedup", s.tokens_per_second / r.scores.front().tokens_per_second}});
  for (const MatrixReport& m : r.matrices) {
    OrderedJson matrix{
        {"name", m.name}, {"shape", {m.shape[0], m.shape[1]}}, {"stored", m.quantized ? "int8" : "f32"}, {"log_perplexity_cost", m.cost}};
    if (m.input_bound > 0 && m.quantized)
      matrix.update(OrderedJson{{"input_bound", m.input_bound}, {"utilisation", m.utilisation}, {"saturated", m.saturated}});
    matrices.push_back(std::move(matrix));
  }
  return {{"machine", r.machine},
          {"model", r.model},
          {"step", r.step},
          {"source", r.source},
          {"target", r.target},
          {"sentences", r.sentences},
          {"target_tokens", r.target_tokens},
          {"truncated", r.truncated},
          {"beam", r.beam},
          {"tokenizer", r.tokenizer},
          {"matrix_sentences", std::min(o.matrix_sentences, r.sentences)},
          {"max_bleu_loss", o.max_bleu_loss},
          {"max_log_perplexity_loss", o.max_log_perplexity_loss},
          {"within_bounds", r.within_bounds},
          {"scores", scores},
          {"bleu_difference",
           {{"int8_minus_f32", r.scores.back().bleu - r.scores.front().bleu},
            {"low", r.bleu_difference.low},
            {"high", r.bleu_difference.high},
            {"confidence", 0.95}}},
          {"matrices", matrices}};
}

}  // namespace starling
