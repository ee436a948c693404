// What `starling bench` prints: text for people, or JSON for scripts. Each figure is written down once, for both.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "measure/bench_translate.h"

namespace starling {

struct BenchTrainResult;
struct BenchLimits;

class Findings {
 public:
  // Keys and values of the JSON.
  using Fields = std::vector<std::pair<std::string, nlohmann::ordered_json>>;

  // columns: width of the names of lines.
  explicit Findings(int columns = 19) : columns_(columns) {}
  // A line of the text, if it is `shown`, and what it says as fields.
  void line(const std::string& name, const std::string& text, const Fields& fields, bool shown = true) {
    if (shown) text_ += fmt::format("{:<{}}{}\n", name, columns_, text);
    only_json(fields);
  }
  void only_text(const std::string& text) { text_ += text; }
  void only_json(const Fields& fields) {
    for (const auto& [key, value] : fields) json_[key] = value;
  }
  // format: "text" or "json".
  void print(std::ostream& out, const std::string& format) const;

 private:
  int columns_;
  std::string text_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

Findings findings(const BenchTrainResult& result);
Findings findings(const BenchTranslateResult& result, int64_t batch_sentences);
Findings findings(const BenchLimits& limits);

}  // namespace starling
