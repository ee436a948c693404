#include "race/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "train/validation.h"

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

// At least as good.
bool reaches(const std::string& metric, double score, double value) { return score == value || Validator::better(metric, score, value); }

std::string number(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }

// "12.3 ± 0.4", "12.3 (2 of 3)", "-".
std::string cell(const Interval& v, size_t seeds, const char* format) {
  if (v.count == 0) return "-";
  std::string text = fmt::format(fmt::runtime(format), v.mean);
  if (v.count > 1) text += " ± " + fmt::format(fmt::runtime(format), v.half);
  if (v.count < seeds) text += fmt::format(" ({} of {})", v.count, seeds);
  return text;
}

Interval scaled(Interval v, double factor) {
  v.mean *= factor, v.half *= factor;
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
    if (reaches(metric, found->second, value)) {
      const double f = before ? (value - score_before) / (found->second - score_before) : 1;
      const auto between = [&](double a, double b) { return a + f * (b - a); };
      const CurvePoint start = before ? *before : p;
      return Reached{between(static_cast<double>(start.tokens), static_cast<double>(p.tokens)), between(start.seconds, p.seconds),
                     between(static_cast<double>(start.bytes), static_cast<double>(p.bytes))};
    }
    before = &p, score_before = found->second;
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

RaceResults::RaceResults(const RaceRecipe& recipe, std::vector<RaceResult> results, std::vector<Candidate> candidates)
    : recipe_(recipe), results_(std::move(results)), candidates_(std::move(candidates)) {}

// One worker has no network, and is shown in every place.
bool RaceResults::here(const RaceResult& r, const std::string& network, int workers) const {
  return r.workers == 1 || (r.workers == workers && r.network == network);
}

const RaceResult* RaceResults::baseline(int64_t seed) const {
  for (const RaceResult& r : results_)
    if (r.arm == recipe_.baseline.name && r.seed == seed) return &r;
  return nullptr;
}

double RaceResults::target_value(const RaceTarget& t, int64_t seed) const {
  if (t.value != 0) return t.value;
  const RaceResult* one = baseline(seed);
  if (!one) return kNone;
  return one->final_score(t.metric) * (Validator::better(t.metric, 1, 2) ? 1 + t.margin : 1 - t.margin);
}

std::vector<int> RaceResults::worker_counts() const {
  std::set<int> counts;
  for (const RaceResult& r : results_)
    if (r.workers > 1) counts.insert(r.workers);
  return {counts.begin(), counts.end()};
}

RaceResults::Row RaceResults::row(const RaceArm& arm, const std::string& network, int workers, const RaceTarget& target) const {
  Row row{.arm = arm.name, .control = arm.control};
  std::vector<double> tokens, seconds, bytes, convergence, throughput, loss, baseline_loss;
  std::map<std::string, std::vector<double>> finals;
  for (const RaceResult& r : results_) {
    if (r.arm != arm.name || r.workers != workers || !here(r, network, workers)) continue;
    ++row.seeds, row.workers = r.workers, row.rate = r.rate, row.diverged += r.diverged;
    if (r.diverged) continue;
    const RaceResult* one = baseline(r.seed);
    const double value = target_value(target, r.seed);
    if (const auto reached = first_reached(r.curve, target.metric, value)) {
      tokens.push_back(reached->tokens), seconds.push_back(reached->seconds), bytes.push_back(reached->bytes);
      const auto alone = one ? first_reached(one->curve, target.metric, value) : std::nullopt;
      if (alone) convergence.push_back(alone->seconds / reached->seconds);
    }
    if (one) throughput.push_back(r.tokens_per_second() / one->tokens_per_second());
    loss.push_back(r.final_score("cross-entropy"));
    if (one) baseline_loss.push_back(one->final_score("cross-entropy"));
    for (const auto& [metric, score] : r.final_scores) finals[metric].push_back(score);
  }
  row.tokens = interval(tokens), row.seconds = interval(seconds), row.bytes = interval(bytes);
  row.convergence = interval(convergence), row.throughput = interval(throughput), row.loss = interval(loss);
  row.baseline_loss = interval(baseline_loss).mean;
  for (const auto& [metric, scores] : finals) row.finals[metric] = interval(scores);
  return row;
}

std::vector<RaceResults::Row> RaceResults::rows(const std::string& network, int workers, const RaceTarget& target) const {
  std::vector<Row> all;
  const auto add = [&](const RaceArm& arm) {
    for (const int count : {1, workers})
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
    if (row.control || row.workers != workers || !sound) continue;
    if (!best || row.seconds.mean < best->seconds.mean) best = row;
  }
  return best;
}

std::vector<std::string> RaceResults::recommendations() const {
  std::vector<std::string> lines;
  const std::string target = target_text(recipe_.targets.front());
  for (const RaceNetwork& network : recipe_.networks)
    for (const int workers : worker_counts()) {
      const std::string place = fmt::format("simulated: {} workers on {}: ", workers, network.name);
      const auto best = recommended(network.name, workers);
      if (!best)
        lines.push_back(place + "no arm to recommend: none reaches the target (" + target +
                        ") with a final loss within 1 % of one worker's");
      else
        lines.push_back(place + (best->convergence.mean < 1 ? "stay with one worker; the best of the others: " : "use ") +
                        fmt::format("{} with learning rate {:g}: {} in {:.1f} virtual seconds, {:.2f}x one worker (throughput "
                                    "{:.2f}x), final loss {:.4f} (one worker {:.4f}), {:.1f} MiB sent a worker",
                                    best->arm, best->rate, target, best->seconds.mean, best->convergence.mean, best->throughput.mean,
                                    best->loss.mean, best->baseline_loss, best->bytes.mean / kMiB));
    }
  return lines;
}

std::vector<std::string> RaceResults::ranking() const {
  struct Standing {
    std::string arm;
    double log_time = 0, loss = 0;
  };
  constexpr double kUnreached = 100;  // in logarithms: behind everybody who arrives
  std::map<std::string, Standing> standings;
  for (const RaceNetwork& network : recipe_.networks)
    for (const int workers : worker_counts())
      for (const Row& row : rows(network.name, workers, recipe_.targets.front())) {
        if (row.control || row.workers != workers) continue;
        Standing& s = standings[row.arm];
        s.arm = row.arm;
        s.log_time += row.seconds.count > 0 ? std::log(std::max(row.seconds.mean, 1e-12)) : kUnreached;
        s.loss += row.loss.count > 0 ? row.loss.mean : kUnreached;
      }
  std::vector<Standing> sorted;
  for (const RaceArm& arm : recipe_.arms)
    if (standings.contains(arm.name)) sorted.push_back(standings[arm.name]);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Standing& a, const Standing& b) {
    return a.log_time != b.log_time ? a.log_time < b.log_time : a.loss < b.loss;
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
  out += "\n";
  for (const RaceResult& r : results_)
    for (const RaceTarget& t : recipe_.targets) {
      const RaceResult* one = baseline(r.seed);
      const double value = target_value(t, r.seed);
      const auto reached = first_reached(r.curve, t.metric, value);
      const auto alone = one ? first_reached(one->curve, t.metric, value) : std::nullopt;
      const CurvePoint last = r.curve.empty() ? CurvePoint{} : r.curve.back();
      const auto of = [&](double Reached::*what) { return reached ? number((*reached).*what) : ""; };
      out += fmt::format("yes,{},{},{},{},{},{},{:g},{},{},{},{},{},{},{},{},{},{},{},{},{}", r.arm, r.control ? "yes" : "no", r.workers,
                         r.network, r.workers > 1 ? number(r.bandwidth_gbit_s) : "", r.seed, r.rate, r.diverged ? "yes" : "no", last.step,
                         last.tokens, number(last.seconds), last.bytes, t.metric, number(value), of(&Reached::tokens),
                         of(&Reached::seconds), of(&Reached::bytes), reached && alone ? number(alone->seconds / reached->seconds) : "",
                         one ? number(r.tokens_per_second() / one->tokens_per_second()) : "", number(r.final_score("cross-entropy")));
      for (const std::string& metric : recipe_.final_metrics) {
        const auto found = r.final_scores.find(metric);
        out += "," + (found == r.final_scores.end() ? "" : number(found->second));
      }
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
      "| arm | workers | seeds | learning rate | tokens to target, M | virtual time to target, s | sent a worker, MiB | convergence "
      "speed-up | "
      "throughput speed-up | final loss |";
  std::string line = "|---|---|---|---|---|---|---|---|---|---|";
  for (const std::string& metric : recipe_.final_metrics) out += " final " + metric + " |", line += "---|";
  out += "\n" + line + "\n";
  for (const Row& r : rows(network, workers, target)) {
    out += fmt::format("| {}{}{} | {} | {} | {:g} | {} | {} | {} | {} | {} | {} |", r.arm, r.control ? " (control)" : "",
                       r.diverged > 0 ? fmt::format(", {} diverged", r.diverged) : "", r.workers, r.seeds, r.rate,
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

std::string RaceResults::markdown() const {
  std::string out =
      "# Race\n\nReal gradients, simulated cluster: every time is virtual. ± is the half-width of the 95 % interval of the mean over "
      "seeds; "
      "\"(2 of 3)\": so many seeds reached the target, and the mean is theirs; \"-\": none did.\n";
  for (const std::string& line : recommendations()) out += "\n- " + line;
  out += "\n";
  for (const RaceNetwork& network : recipe_.networks)
    for (const int workers : worker_counts()) {
      double bandwidth = 0;
      for (const RaceResult& r : results_)
        if (r.workers == workers && r.network == network.name) bandwidth = r.bandwidth_gbit_s;
      out += fmt::format("\n## {} workers on {} ({}{:.4g} Gbit/s)\n", workers, network.name,
                         network.r > 0 ? fmt::format("r = {:g}, ", network.r) : "", bandwidth);
      for (const RaceTarget& t : recipe_.targets) out += "\nTarget: " + target_text(t) + ".\n\n" + table(network.name, workers, t);
    }
  if (!candidates_.empty()) out += "\n## Learning rates\n\n| arm | workers | learning rate | final loss | |\n|---|---|---|---|---|\n";
  for (const Candidate& c : candidates_)
    out += fmt::format("| {} | {} | {:g} | {} | {} |\n", c.arm, c.workers, c.rate,
                       std::isfinite(c.loss) ? fmt::format("{:.4f}", c.loss) : "diverged", c.chosen ? "chosen" : "");
  return out;
}

}  // namespace starling
