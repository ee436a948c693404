#include "experiments/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "base/counted.h"
#include "base/error.h"
#include "evaluation/model_selector.h"
#include "experiments/target_check.h"

namespace starling {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kMiB = 1 << 20;

// The 97.5 % quantile of Student's t, by degrees of freedom.
double t_quantile(size_t freedom) {
  static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
                                 2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return freedom <= 30 ? table[freedom - 1] : 1.96;
}

// Whether `a` is at least as good as `b`.
bool reaches(const std::string& metric, double score, double value) { return score == value || better_score(metric, score, value); }

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : ""; }

void add_finite(std::vector<double>& values, double value) {
  if (std::isfinite(value)) values.push_back(value);
}

// "12.3 ± 0.4", "12.3 (2 of 3)", "-".
std::string cell(const Interval& v, size_t seeds, const char* format) {
  if (v.count == 0) return "-";
  std::string text = fmt::format(fmt::runtime(format), v.mean);
  if (v.count > 1) text += " ± " + fmt::format(fmt::runtime(format), v.half);
  if (v.count < seeds) text += fmt::format(" ({} of {})", v.count, seeds);
  return text;
}

Interval scaled(Interval v, double factor) {
  v.mean *= factor;
  v.half *= factor;
  return v;
}

}  // namespace

double RaceResult::final_score(const std::string& metric) const {
  if (curve.empty()) return kNone;
  const auto found = curve.back().scores.find(metric);
  return found == curve.back().scores.end() ? kNone : found->second;
}

double RaceResult::tokens_per_second() const {
  return curve.empty() || curve.back().seconds <= 0 ? kNone : static_cast<double>(curve.back().tokens) / curve.back().seconds;
}

std::optional<Reached> first_reached(std::span<const CurvePoint> curve, const std::string& metric, double value) {
  const CurvePoint* before = nullptr;
  double score_before = 0;
  for (const CurvePoint& p : curve) {
    const auto found = p.scores.find(metric);
    if (found == p.scores.end()) continue;
    if (!std::isfinite(found->second)) {
      before = nullptr;
      continue;
    }
    if (reaches(metric, found->second, value)) {
      const double f = before ? (value - score_before) / (found->second - score_before) : 1;
      const auto between = [&](double a, double b) { return a + f * (b - a); };
      const CurvePoint start = before ? *before : p;
      return Reached{between(static_cast<double>(start.tokens), static_cast<double>(p.tokens)), between(start.seconds, p.seconds),
                     between(static_cast<double>(start.bytes), static_cast<double>(p.bytes))};
    }
    before = &p;
    score_before = found->second;
  }
  return std::nullopt;
}

Interval interval(std::span<const double> values) {
  Interval v{.count = values.size()};
  const double n = static_cast<double>(values.size());
  if (values.empty()) return {kNone, 0, 0};
  for (const double x : values) v.mean += x / n;
  double squares = 0;
  for (const double x : values) squares += (x - v.mean) * (x - v.mean);
  if (values.size() > 1) v.half = t_quantile(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return v;
}

std::string target_text(const RaceTarget& t) {
  if (t.value != 0) return fmt::format("{} {:g}", t.metric, t.value);
  return fmt::format("{} of one worker at its end{}", t.metric, t.margin > 0 ? fmt::format(", {:g} % worse at most", 100 * t.margin) : "");
}

RaceResults::RaceResults(const RaceRecipe& recipe, std::vector<RaceResult> results, std::vector<Candidate> candidates,
                         std::string unfinished)
    : recipe_(recipe), results_(std::move(results)), candidates_(std::move(candidates)), unfinished_(std::move(unfinished)) {}

// A single worker is listed with every number of workers, and on every network if it has none of its own.
bool RaceResults::here(const RaceResult& r, const std::string& network, int workers) const {
  return (r.workers == 1 || r.workers == workers) && (r.network.empty() || r.network == network);
}

const RaceResult* RaceResults::baseline(int64_t seed) const {
  for (const RaceResult& r : results_)
    if (r.arm == recipe_.baseline.name && r.seed == seed) return r.diverged ? nullptr : &r;
  return nullptr;
}

std::optional<Reached> RaceResults::reached(const RaceResult& r, const RaceTarget& target, double value) const {
  return r.diverged ? std::nullopt : first_reached(r.curve, target.metric, value);
}

double RaceResults::target_value(const RaceTarget& t, int64_t seed) const {
  if (t.value != 0) return t.value;
  const RaceResult* one = baseline(seed);
  if (!one) return kNone;
  return one->final_score(t.metric) * (better_score(t.metric, 1, 2) ? 1 + t.margin : 1 - t.margin);
}

std::vector<int> RaceResults::worker_counts() const {
  std::set<int> counts;
  for (const RaceResult& r : results_)
    if (r.workers > 1) counts.insert(r.workers);
  if (counts.empty() && !results_.empty()) counts.insert(1);
  return {counts.begin(), counts.end()};
}

RaceResults::Row RaceResults::row(const RaceArm& arm, const std::string& network, int workers, const RaceTarget& target) const {
  Row row{.arm = arm.name, .control = arm.control};
  std::vector<double> tokens, seconds, bytes, convergence, throughput, loss, baseline_loss;
  std::map<std::string, std::vector<double>> finals;
  for (const RaceResult& r : results_) {
    if (r.arm != arm.name || r.workers != workers || !here(r, network, workers)) continue;
    ++row.seeds;
    row.workers = r.workers;
    row.rate = r.rate;
    row.second = r.second;
    row.diverged += r.diverged;
    if (r.diverged) continue;
    const RaceResult* one = baseline(r.seed);
    const double value = target_value(target, r.seed);
    if (const auto at = reached(r, target, value)) {
      tokens.push_back(at->tokens);
      seconds.push_back(at->seconds);
      bytes.push_back(at->bytes);
      const auto alone = one ? reached(*one, target, value) : std::nullopt;
      if (alone) add_finite(convergence, alone->seconds / at->seconds);
    }
    if (one) add_finite(throughput, r.tokens_per_second() / one->tokens_per_second());
    add_finite(loss, r.final_score("cross-entropy"));
    if (one) add_finite(baseline_loss, one->final_score("cross-entropy"));
    for (const auto& [metric, score] : r.final_scores) add_finite(finals[metric], score);
  }
  row.tokens = interval(tokens);
  row.seconds = interval(seconds);
  row.bytes = interval(bytes);
  row.convergence = interval(convergence);
  row.throughput = interval(throughput);
  row.loss = interval(loss);
  row.baseline_loss = interval(baseline_loss).mean;
  for (const auto& [metric, scores] : finals) row.finals[metric] = interval(scores);
  return row;
}

std::vector<RaceResults::Row> RaceResults::rows(const std::string& network, int workers, const RaceTarget& target) const {
  std::vector<Row> all;
  const auto add = [&](const RaceArm& arm) {
    for (const int count : std::set<int>{1, workers})
      if (Row r = row(arm, network, count, target); r.seeds > 0) all.push_back(std::move(r));
  };
  add(recipe_.baseline);
  for (const RaceArm& arm : recipe_.arms) add(arm);
  return all;
}

std::optional<RaceResults::Row> RaceResults::recommended(const std::string& network, int workers) const {
  std::optional<Row> best;
  for (const Row& row : rows(network, workers, recipe_.targets.front())) {
    const bool sound = row.seconds.count == row.seeds && row.loss.mean <= 1.01 * row.baseline_loss;
    if (row.arm == recipe_.baseline.name || row.control || row.workers != workers || !sound) continue;
    if (!best || row.seconds.mean < best->seconds.mean) best = row;
  }
  return best;
}

std::string RaceResults::recommendation(const Row& best) const {
  std::string tuned = best.arm;
  for (const RaceArm& arm : recipe_.arms)
    if (arm.name == best.arm && !arm.trained_as.empty()) tuned = arm.trained_as;
  const auto tried = std::count_if(candidates_.begin(), candidates_.end(), [&](const Candidate& c) { return c.arm == tuned; });
  return fmt::format(
      "{}{} with learning rate {}: {} in {:.1f} virtual seconds, {}{}, final loss {:.4f} (one worker {:.4f}), {:.1f} MiB "
      "sent per worker ({}{})",
      best.convergence.count > 0 && best.convergence.mean < 1 ? "stay with one worker; the best of the others: " : "use ", best.arm,
      tuned_text(best.rate, best.second), target_text(recipe_.targets.front()), best.seconds.mean,
      best.convergence.count > 0 ? fmt::format("{:.2f}x one worker", best.convergence.mean) : "one worker does not reach it",
      best.throughput.count == 0 ? "" : fmt::format(" (throughput {:.2f}x)", best.throughput.mean), best.loss.mean, best.baseline_loss,
      best.bytes.mean / kMiB, counted(static_cast<int64_t>(best.seeds), "seed"),
      tried < 2         ? ""
      : best.seeds == 1 ? ", which also chose the learning rate"
                        : ", one of which also chose the learning rate");
}

bool RaceResults::only_controls() const {
  return !recipe_.arms.empty() && std::all_of(recipe_.arms.begin(), recipe_.arms.end(), [](const RaceArm& arm) { return arm.control; });
}

// Returns why no arm is recommended or, if all are controls, which one ends with the lowest loss, as in the table of the place.
std::string RaceResults::verdict(const std::string& network, int workers) const {
  const RaceTarget& target = recipe_.targets.front();
  std::vector<Row> arms = rows(network, workers, target);
  const auto one = std::find_if(arms.begin(), arms.end(), [&](const Row& r) { return r.arm == recipe_.baseline.name; });
  const std::optional<Row> alone = one == arms.end() ? std::nullopt : std::optional(*one);
  const bool controls = only_controls();
  std::erase_if(arms, [&](const Row& r) { return r.arm == recipe_.baseline.name || r.workers != workers || (!controls && r.control); });
  if (arms.empty()) return "no arm to recommend: none has been trained here";
  if (controls) {
    if (alone) arms.insert(arms.begin(), *alone);
    std::erase_if(arms, [](const Row& r) { return r.loss.count == 0; });
    if (arms.empty()) return "all arms are controls, and all diverged";
    const Row& best = *std::min_element(arms.begin(), arms.end(), [](const Row& a, const Row& b) { return a.loss.mean < b.loss.mean; });
    return fmt::format("all arms are controls; the least final loss has {} with learning rate {}: {:.4f}{}", best.arm,
                       tuned_text(best.rate, best.second), best.loss.mean,
                       best.arm == recipe_.baseline.name || !alone || alone->loss.count == 0
                           ? ""
                           : fmt::format(" ({} {:.4f})", recipe_.baseline.name, alone->loss.mean));
  }
  const std::string none = "no arm to recommend: ", what = target_text(target);
  if (!alone || alone->loss.count == 0)
    return none + fmt::format("one worker, by which they are measured, {}", alone ? "diverged" : "has not been trained yet");
  std::vector<std::string> partly, worse;
  for (const Row& r : arms) {
    if (r.seconds.count == 0) continue;
    if (r.seconds.count < r.seeds)
      partly.push_back(fmt::format("{} with {} of {} seeds", r.arm, r.seconds.count, r.seeds));
    else
      worse.push_back(fmt::format("{} with {:.4f}, one worker {:.4f}", r.arm, r.loss.mean, r.baseline_loss));
  }
  if (partly.empty() && worse.empty()) return none + fmt::format("none reaches the target ({})", what);
  std::vector<std::string> reasons;
  if (!worse.empty()) reasons.push_back(fmt::format("ends with a loss more than 1 % above one worker's ({})", fmt::join(worse, "; ")));
  if (!partly.empty()) reasons.push_back(fmt::format("does not reach it with every seed ({})", fmt::join(partly, "; ")));
  return none + fmt::format("what reaches the target ({}) {}", what, fmt::join(reasons, ", or "));
}

std::vector<std::string> RaceResults::recommendations() const {
  std::vector<std::string> lines;
  const std::string meaningless = only_controls() ? "" : meaningless_target(*this);
  for (const RaceNetwork& network : recipe_.networks)
    for (const int workers : worker_counts()) {
      const auto best = meaningless.empty() ? recommended(network.name, workers) : std::nullopt;
      lines.push_back(fmt::format("simulated: {} on {}: {}", counted(workers, "worker"), network.name,
                                  best                   ? recommendation(*best)
                                  : !meaningless.empty() ? "no arm to recommend: " + meaningless
                                                         : verdict(network.name, workers)));
    }
  return lines;
}

std::vector<std::string> RaceResults::ranking() const {
  struct Standing {
    std::string arm;
    double missed = 0;                   // share of its places where it misses the target
    std::vector<double> relative, loss;  // logarithm of its time over that of the fastest arm
    double mean_relative = 0, mean_loss = 0;
  };
  std::map<std::string, Standing> standings;
  std::map<std::string, double> places;
  for (const RaceNetwork& network : recipe_.networks)
    for (const int workers : worker_counts()) {
      std::vector<Row> here = rows(network.name, workers, recipe_.targets.front());
      std::erase_if(here, [&](const Row& r) { return r.control || r.workers != workers || r.arm == recipe_.baseline.name; });
      const auto reaches_it = [](const Row& r) { return r.seconds.count == r.seeds; };
      const auto log_time = [](const Row& r) { return std::log(std::max(r.seconds.mean, 1e-12)); };
      double fastest = std::numeric_limits<double>::infinity();
      for (const Row& r : here)
        if (reaches_it(r)) fastest = std::min(fastest, log_time(r));
      for (const Row& r : here) {
        Standing& s = standings[r.arm];
        ++places[r.arm];
        if (reaches_it(r))
          s.relative.push_back(log_time(r) - fastest);
        else
          ++s.missed;
        if (r.loss.count > 0) s.loss.push_back(r.loss.mean);
      }
    }
  const auto mean_or_last = [](const std::vector<double>& values) {
    return values.empty() ? std::numeric_limits<double>::infinity() : interval(values).mean;
  };
  std::vector<Standing> sorted;
  for (const RaceArm& arm : recipe_.arms) {
    if (!standings.contains(arm.name)) continue;
    Standing& s = sorted.emplace_back(standings[arm.name]);
    s.arm = arm.name;
    s.missed /= places[arm.name];
    s.mean_relative = mean_or_last(s.relative);
    s.mean_loss = mean_or_last(s.loss);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Standing& a, const Standing& b) {
    return std::tie(a.missed, a.mean_relative, a.mean_loss) < std::tie(b.missed, b.mean_relative, b.mean_loss);
  });
  std::vector<std::string> names;
  for (const Standing& s : sorted) names.push_back(s.arm);
  return names;
}

std::string RaceResults::csv() const {
  std::string out =
      "simulated,arm,control,workers,network,bandwidth_gbit_s,seed,learning_rate,diverged,steps,tokens,virtual_s,sent_bytes_per_worker,"
      "target_metric,target_value,tokens_to_target,virtual_s_to_target,sent_bytes_per_worker_to_target,convergence_speedup,"
      "throughput_speedup,final_loss";
  for (const std::string& metric : recipe_.final_metrics) out += ",final_" + metric;
  if (!recipe_.second_key.empty()) out += "," + recipe_.second_key;
  out += "\n";
  for (const RaceResult& r : results_)
    for (const RaceTarget& t : recipe_.targets) {
      const RaceResult* one = baseline(r.seed);
      const double value = target_value(t, r.seed);
      const auto at = reached(r, t, value);
      const auto alone = one ? reached(*one, t, value) : std::nullopt;
      const CurvePoint last = r.curve.empty() ? CurvePoint{} : r.curve.back();
      const auto of = [&](double Reached::*what) { return at ? number((*at).*what) : ""; };
      out += fmt::format("yes,{},{},{},{},{},{},{:g},{},{},{},{},{},{},{},{},{},{},{},{},{}", r.arm, r.control ? "yes" : "no", r.workers,
                         r.network, r.network.empty() ? "" : number(r.bandwidth_gbit_s), r.seed, r.rate, r.diverged ? "yes" : "no",
                         last.step, last.tokens, number(last.seconds), last.bytes, t.metric, number(value), of(&Reached::tokens),
                         of(&Reached::seconds), of(&Reached::bytes), at && alone ? number(alone->seconds / at->seconds) : "",
                         one ? number(r.tokens_per_second() / one->tokens_per_second()) : "", number(r.final_score("cross-entropy")));
      for (const std::string& metric : recipe_.final_metrics) {
        const auto found = r.final_scores.find(metric);
        out += "," + (found == r.final_scores.end() ? "" : number(found->second));
      }
      if (!recipe_.second_key.empty()) out += r.second.find(',') == std::string::npos ? "," + r.second : ",\"" + r.second + "\"";
      out += "\n";
    }
  return out;
}

std::string RaceResults::curves_csv() const {
  std::string out = "simulated,arm,workers,network,seed,step,tokens,virtual_s,sent_bytes_per_worker,metric,value\n";
  for (const RaceResult& r : results_)
    for (const CurvePoint& p : r.curve)
      for (const auto& [metric, score] : p.scores)
        out += fmt::format("yes,{},{},{},{},{},{},{:.9f},{},{},{}\n", r.arm, r.workers, r.network, r.seed, p.step, p.tokens, p.seconds,
                           p.bytes, metric, number(score));
  return out;
}

std::string RaceResults::table(const std::string& network, int workers, const RaceTarget& target) const {
  std::string out =
      "| arm | workers | seeds | learning rate | tokens to target, M | virtual time to target, s | sent per worker, MiB | convergence "
      "speed-up | "
      "throughput speed-up | final loss |";
  std::string line = "|---|---|---|---|---|---|---|---|---|---|";
  for (const std::string& metric : recipe_.final_metrics) {
    out += " final " + metric + " |";
    line += "---|";
  }
  out += "\n" + line + "\n";
  for (const Row& r : rows(network, workers, target)) {
    out += fmt::format("| {}{}{} | {} | {} | {} | {} | {} | {} | {} | {} | {} |", r.arm, r.control ? " (control)" : "",
                       r.diverged > 0 ? fmt::format(", {} diverged", r.diverged) : "", r.workers, r.seeds, tuned_text(r.rate, r.second),
                       cell(scaled(r.tokens, 1e-6), r.seeds, "{:.3f}"), cell(r.seconds, r.seeds, "{:.1f}"),
                       cell(scaled(r.bytes, 1 / kMiB), r.seeds, "{:.1f}"), cell(r.convergence, r.seeds, "{:.2f}"),
                       cell(r.throughput, r.seeds, "{:.2f}"), cell(r.loss, r.seeds, "{:.4f}"));
    for (const std::string& metric : recipe_.final_metrics) {
      const auto found = r.finals.find(metric);
      out += " " + (found == r.finals.end() ? "-" : cell(found->second, r.seeds, "{:.2f}")) + " |";
    }
    out += "\n";
  }
  return out;
}

// Describes the target, its value and whether one worker reaches it.
std::string RaceResults::target_line(const RaceTarget& target) const {
  std::vector<double> values;
  bool has_one = false, one_reaches = false;
  for (const int64_t seed : recipe_.seeds)
    if (const RaceResult* one = baseline(seed)) {
      const double value = target_value(target, seed);
      add_finite(values, value);
      has_one = true;
      one_reaches = one_reaches || reached(*one, target, value);
    }
  std::string text = "Target: " + target_text(target);
  if (target.value == 0 && !values.empty())
    text += fmt::format(": {:.4f}{}", interval(values).mean,
                        values.size() > 1 ? fmt::format(" (mean of {} seeds)", values.size()) : std::string());
  return text + (has_one && !one_reaches ? ". One worker does not reach it." : ".");
}

std::string RaceResults::markdown() const {
  std::string out = "# Race\n";
  if (!unfinished_.empty()) out += "\n**Unfinished: " + unfinished_ + ".**\n";
  out +=
      "\nReal gradients, simulated cluster: every time is virtual. ± is the half-width of the 95 % interval of the mean over seeds; "
      "\"(2 of 3)\": only so many seeds have it, and the mean is theirs; \"-\": none has it, as the target is not reached (for a speed-up: "
      "also not by one worker) or the run diverged.\n";
  for (const std::string& line : recommendations()) out += "\n- " + line;
  out += "\n";
  for (const RaceNetwork& network : recipe_.networks)
    for (const int workers : worker_counts()) {
      double bandwidth = 0;
      for (const RaceResult& r : results_)
        if (r.workers == workers && r.network == network.name) bandwidth = r.bandwidth_gbit_s;
      std::vector<std::string> facts;
      if (network.r > 0) facts.push_back(fmt::format("r = {:g}", network.r));
      if (bandwidth > 0) facts.push_back(fmt::format("{:.4g} Gbit/s", bandwidth));
      out += fmt::format("\n## {} on {}{}\n", counted(workers, "worker"), network.name,
                         facts.empty() ? "" : fmt::format(" ({})", fmt::join(facts, ", ")));
      for (const RaceTarget& t : recipe_.targets) out += "\n" + target_line(t) + "\n\n" + table(network.name, workers, t);
    }
  return out + tuning();
}

// "0.002", "0.002, batch-tokens 512".
std::string RaceResults::tuned_text(double rate, const std::string& second) const {
  const std::string& key = recipe_.second_key;
  return fmt::format("{:g}{}", rate, second.empty() ? "" : fmt::format(", {} {}", key.substr(key.find('.') + 1), second));
}

// Lists the candidates and what comparing them took.
std::string RaceResults::tuning() const {
  if (candidates_.empty()) return "";
  std::map<std::pair<std::string, int>, double> spent;
  for (const Candidate& c : candidates_) spent[{c.arm, c.workers}] += static_cast<double>(c.tokens);
  const auto [least, most] =
      std::minmax_element(spent.begin(), spent.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string out = fmt::format(
      "\n## Learning rates\n\nTarget tokens that an arm's candidates were trained on, at a number of workers: {:.3g} M{}.\n",
      1e-6 * most->second, least->second < most->second ? fmt::format(" at most, {:.3g} M at least", 1e-6 * least->second) : "");
  out += "\n| arm | workers | tokens, M | learning rate | final loss | |\n|---|---|---|---|---|---|\n";
  for (const Candidate& c : candidates_)
    out += fmt::format("| {} | {} | {:g} | {} | {} | {} |\n", c.arm, c.workers, 1e-6 * static_cast<double>(c.tokens),
                       tuned_text(c.rate, c.second), std::isfinite(c.loss) ? fmt::format("{:.4f}", c.loss) : "diverged",
                       c.chosen ? "chosen" : "");
  return out;
}

}  // namespace starling
