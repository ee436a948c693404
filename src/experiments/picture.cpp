#include "experiments/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "evaluation/validation.h"

namespace starling {
namespace {

constexpr double kWide = 330, kHigh = 210, kLeft = 52, kTop = 40, kGapX = 70, kGapY = 62;
constexpr const char* kColors[] = {"#444444", "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#8c564b", "#7f7f00", "#6a3d9a"};

// The first color is reserved for the single worker.
std::string color(size_t arm) { return kColors[arm == 0 ? 0 : 1 + (arm - 1) % (std::size(kColors) - 1)]; }
// Arms that reuse a color have dashed lines and pale bars.
bool repeated(size_t arm) { return arm >= std::size(kColors); }
std::string dashes(size_t arm) { return arm == 0 ? " stroke-dasharray=\"5 3\"" : repeated(arm) ? " stroke-dasharray=\"8 2 2 2\"" : ""; }

// A generous estimate for a sans-serif font of size 1.
constexpr double kLetter = 0.63;
double text_width(const std::string& text, double size) { return kLetter * size * static_cast<double>(text.size()); }

// Returns the part of the text that fits into a width, with an ellipsis for the rest.
std::string fitted(const std::string& text, double size, double width) {
  if (text_width(text, size) <= width) return text;
  return text.substr(0, static_cast<size_t>(std::max(1.0, width / (kLetter * size) - 1))) + "…";
}

// Returns about five round numbers from low to high.
std::vector<double> ticks(double low, double high) {
  const double raw = (high - low) / 5, power = std::pow(10, std::floor(std::log10(raw)));
  const double step = raw / power < 1.5 ? power : raw / power < 3.5 ? 2 * power : raw / power < 7.5 ? 5 * power : 10 * power;
  std::vector<double> all;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) all.push_back(i * step + 0.0);  // no negative zero
  return all;
}

struct Frame {
  double x, y, low_x, high_x, low_y, high_y;
  double px(double v) const { return x + (v - low_x) / (high_x - low_x) * kWide; }
  double py(double v) const { return y + kHigh - (v - low_y) / (high_y - low_y) * kHigh; }
};

class Picture {
 public:
  explicit Picture(const RaceResults& results) : results_(results), recipe_(results.recipe()), target_(recipe_.targets.front()) {
    arms_.push_back(recipe_.baseline.name);
    for (const RaceArm& arm : recipe_.arms) arms_.push_back(arm.name);
  }

  std::string text() {
    const std::vector<int> counts = results_.worker_counts();
    bool bars = false;  // false if no arm reaches the target
    for (const RaceNetwork& network : recipe_.networks)
      for (const int workers : counts) bars = bars || has_bars(network.name, workers);
    const size_t networks = recipe_.networks.size(), panels = counts.size() + (bars ? 1 : 0);
    const size_t columns = networks == 1 ? std::min<size_t>(2, panels) : networks;  // a single network gets two columns
    const double rows = networks == 1 ? std::ceil(static_cast<double>(panels) / 2) : static_cast<double>(panels);
    const std::string title = fmt::format("Simulated{}: {} over virtual seconds{}", results_.unfinished().empty() ? "" : ", unfinished",
                                          target_.metric, bars ? ", speed-up over one worker" : "");
    width_ = std::max({kLeft + static_cast<double>(columns) * (kWide + kGapX), kLeft + legend_column(), kLeft + text_width(title, 14)});
    const double legend = 26.0 * std::ceil(static_cast<double>(arms_.size()) / legend_columns());
    const double height = kTop + legend + rows * (kHigh + kGapY);
    body_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width_, height);
    label(kLeft, 20, title, "start", 14);
    draw_legend();
    for (size_t n = 0; n < networks; ++n)
      for (size_t panel = 0; panel < panels; ++panel) {
        const size_t column = networks == 1 ? panel % 2 : n, row = networks == 1 ? panel / 2 : panel;
        const double x = kLeft + static_cast<double>(column) * (kWide + kGapX);
        const double y = kTop + legend + 20 + static_cast<double>(row) * (kHigh + kGapY);
        if (panel < counts.size())
          draw_curves(recipe_.networks[n], counts[panel], x, y);
        else
          draw_bars(recipe_.networks[n], counts, x, y);
      }
    return body_ + "</svg>\n";
  }

 private:
  // The width of the longest name.
  double legend_column() const {
    double longest = 150;
    for (const std::string& arm : arms_) longest = std::max(longest, text_width(arm, 11));
    return longest + 40;
  }
  double legend_columns() const { return std::max(1.0, std::floor((width_ - kLeft) / legend_column())); }

  void label(double x, double y, const std::string& text, const char* anchor, int size = 11) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y, anchor, size, text);
  }
  void line(double x1, double y1, double x2, double y2, const std::string& stroke, const std::string& more = "") {
    body_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1, x2, y2, stroke, more);
  }

  void draw_legend() {
    for (size_t a = 0; a < arms_.size(); ++a) {
      const double columns = legend_columns(), i = static_cast<double>(a);
      const double x = kLeft + std::fmod(i, columns) * legend_column(), y = kTop + 26 * std::floor(i / columns);
      line(x, y, x + 22, y, color(a), " stroke-width=\"2.5\"" + dashes(a));
      label(x + 28, y + 4, arms_[a], "start");
    }
  }

  void axes(const Frame& f, const std::string& title, const std::string& x_title, const std::string& y_title, bool vertical_only = false) {
    label(f.x, f.y - 8, fitted(title, 12, kWide + 0.5 * kGapX), "start", 12);
    label(f.x + kWide / 2, f.y + kHigh + 30, x_title, "middle");
    body_ += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"middle\" font-size=\"11\">{}</text>\n",
                         f.x - 38, f.y + kHigh / 2, y_title);
    for (const double v : ticks(f.low_y, f.high_y)) {
      line(f.x, f.py(v), f.x + kWide, f.py(v), "#dddddd");
      label(f.x - 5, f.py(v) + 4, fmt::format("{:.3g}", v), "end");
    }
    if (!vertical_only)
      for (const double v : ticks(f.low_x, f.high_x)) {
        line(f.px(v), f.y + kHigh, f.px(v), f.y + kHigh + 4, "black");
        label(f.px(v), f.y + kHigh + 16, fmt::format("{:.4g}", v), "middle");
      }
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"none\" stroke=\"black\"/>\n", f.x, f.y,
                         kWide, kHigh);
  }

  std::vector<const RaceResult*> shown(const std::string& network, int workers) const {
    std::vector<const RaceResult*> all;
    for (const RaceResult& r : results_.results())
      if (results_.here(r, network, workers) && !r.curve.empty()) all.push_back(&r);
    return all;
  }

  // The scores to draw.
  static std::vector<std::pair<double, double>> points(const RaceResult& r, const std::string& metric) {
    std::vector<std::pair<double, double>> all;
    for (const CurvePoint& p : r.curve)
      if (const auto found = p.scores.find(metric); found != p.scores.end() && std::isfinite(found->second))
        all.emplace_back(p.seconds, found->second);
    return all;
  }

  // The time that most runs need, and the scores from their second validation on, as long as they do not diverge.
  Frame frame(const std::vector<const RaceResult*>& shown, double x, double y) const {
    Frame f{x, y, 0, 0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (const RaceResult* r : shown) {
      f.high_x = std::max(f.high_x, r->curve.back().seconds);
      if (r->diverged) continue;
      const auto values = points(*r, target_.metric);
      for (size_t i = values.size() > 2 ? 1 : 0; i < values.size(); ++i)
        f.low_y = std::min(f.low_y, values[i].second), f.high_y = std::max(f.high_y, values[i].second);
    }
    if (!(f.high_x > 0)) f.high_x = 1;
    if (!(f.low_y < f.high_y)) {
      f.low_y = std::isfinite(f.low_y) ? f.low_y - 0.5 : 0;
      f.high_y = f.low_y + 1;
    }
    const double margin = 0.04 * (f.high_y - f.low_y);
    f.low_y -= margin;
    f.high_y += margin;
    return f;
  }

  struct Curve {
    const RaceResult* result;
    std::vector<std::pair<double, double>> at;  // points in picture coordinates
  };
  // Whether the other curve would be hidden if both had the same width.
  static bool hides(const Curve& curve, const Curve& other) {
    return curve.at.size() == other.at.size() &&
           std::equal(curve.at.begin(), curve.at.end(), other.at.begin(),
                      [](const auto& a, const auto& b) { return std::hypot(a.first - b.first, a.second - b.second) < 1; });
  }

  bool has_bars(const std::string& network, int workers) const {
    const std::vector<RaceResults::Row> rows = results_.rows(network, workers, target_);
    return std::any_of(rows.begin(), rows.end(), [&](const RaceResults::Row& r) { return r.arm != arms_[0] && r.convergence.count > 0; });
  }

  void draw_curves(const RaceNetwork& network, int workers, double x, double y) {
    const auto all = shown(network.name, workers);
    const Frame f = frame(all, x, y);
    axes(f, fmt::format("{} worker{} on {}", workers, workers == 1 ? "" : "s", network.name), "virtual seconds", target_.metric);
    if (all.empty()) return label(x + kWide / 2, y + kHigh / 2, "no run has been validated yet", "middle");
    body_ += fmt::format("<clipPath id=\"c{}\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\"/></clipPath>\n", ++clips_,
                         x, y, kWide, kHigh);
    if (const double value = results_.target_value(target_, recipe_.seeds.front()); value > f.low_y && value < f.high_y)
      line(x, f.py(value), x + kWide, f.py(value), "#888888", " stroke-dasharray=\"2 3\"");
    std::vector<Curve> curves;
    for (const RaceResult* r : all) {
      Curve& curve = curves.emplace_back(Curve{r, {}});
      for (const auto& [seconds, value] : points(*r, target_.metric)) curve.at.emplace_back(f.px(seconds), f.py(value));
    }
    for (size_t i = 0; i < curves.size(); ++i) {
      const auto& [r, at] = curves[i];
      const auto arm = static_cast<size_t>(std::find(arms_.begin(), arms_.end(), r->arm) - arms_.begin());
      // A curve that later ones cover is drawn wider, so that it shows at their sides.
      const auto hiding = [&](const Curve& other) { return hides(other, curves[i]); };
      const auto above = static_cast<double>(std::count_if(curves.begin() + static_cast<ptrdiff_t>(i) + 1, curves.end(), hiding));
      if (at.size() == 1) {
        body_ += fmt::format("<circle clip-path=\"url(#c{})\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" fill=\"{}\"/>\n", clips_, at[0].first,
                             at[0].second, 3 + 1.5 * above, color(arm));
        continue;
      }
      std::string path;
      for (const auto& [px, py] : at) path += fmt::format("{:.1f},{:.1f} ", px, py);
      const double width = (r->seed == recipe_.seeds.front() ? 1.8 : 0.7) + 2.4 * above;
      body_ += fmt::format("<polyline clip-path=\"url(#c{})\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\"{} points=\"{}\"/>\n",
                           clips_, color(arm), width, dashes(arm), path);
    }
  }

  void draw_bars(const RaceNetwork& network, const std::vector<int>& counts, double x, double y) {
    std::vector<std::vector<RaceResults::Row>> groups;
    double most = 1;
    for (const int workers : counts) {
      groups.push_back(results_.rows(network.name, workers, target_));
      std::erase_if(groups.back(), [&](const RaceResults::Row& r) { return r.arm == arms_[0]; });
      for (const RaceResults::Row& r : groups.back())
        if (r.convergence.count > 0) most = std::max(most, r.convergence.mean + r.convergence.half);
    }
    const Frame f{x, y, 0, 1, 0, 1.2 * most};
    axes(f, "Convergence speed-up on " + network.name, "workers", "times one worker", true);
    if (std::none_of(counts.begin(), counts.end(), [&](int workers) { return has_bars(network.name, workers); }))
      return label(x + kWide / 2, y + kHigh / 2, "no arm reaches the target", "middle");
    const double group = kWide / static_cast<double>(std::max<size_t>(1, counts.size()));
    for (size_t g = 0; g < groups.size(); ++g) {
      const double left = x + group * static_cast<double>(g),
                   bar = 0.8 * group / static_cast<double>(std::max<size_t>(1, groups[g].size()));
      label(left + group / 2, y + kHigh + 16, fmt::format("{}", counts[g]), "middle");
      for (size_t i = 0; i < groups[g].size(); ++i) draw_bar(f, groups[g][i], left + 0.1 * group + bar * static_cast<double>(i), bar);
    }
  }

  void draw_bar(const Frame& f, const RaceResults::Row& r, double x, double width) {
    if (r.convergence.count == 0) return label(x + width / 2, f.y + kHigh - 4, "-", "middle", 9);
    const auto arm = static_cast<size_t>(std::find(arms_.begin(), arms_.end(), r.arm) - arms_.begin());
    const double top = f.py(r.convergence.mean);
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"{}/>\n", x + 0.1 * width, top,
                         0.8 * width, f.y + kHigh - top, color(arm), repeated(arm) ? " fill-opacity=\"0.5\"" : "");
    const double middle = x + width / 2, high = f.py(r.convergence.mean + r.convergence.half);
    if (r.convergence.half > 0) line(middle, high, middle, f.py(std::max(0.0, r.convergence.mean - r.convergence.half)), "black");
    const std::string number = fmt::format("{:.1f}", r.convergence.mean);
    if (text_width(number, 9) <= width) return label(middle, high - 3, number, "middle", 9);
    body_ += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" font-size=\"{:.0f}\">{}</text>\n",
                         middle + 0.35 * std::min(9.0, width), high - 3, std::clamp(width, 5.0, 9.0), number);
  }

  const RaceResults& results_;
  const RaceRecipe& recipe_;
  const RaceTarget target_;
  std::vector<std::string> arms_;  // one worker first
  double width_ = 0;
  std::string body_;
  int clips_ = 0;
};

}  // namespace

std::string race_picture(const RaceResults& results) { return Picture(results).text(); }

}  // namespace starling
