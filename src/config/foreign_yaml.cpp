#include "config/foreign_yaml.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/quotes.h"

namespace starling {
namespace {

constexpr int kMostLevels = 32;  // Marian's and OpenNMT-py's configurations have four

// Sees a document as it is parsed, before nodes are made of it.
class ForeignYamlCheck : public YAML::EventHandler {
 public:
  ForeignYamlCheck(const std::string& where, int first_line) : where_(where), first_line_(first_line) {}
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { scalar(mark, ""); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "has an alias (*NAME), which is not read; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& value) override { scalar(mark, value); }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    enter(mark, false);
  }
  void OnSequenceEnd() override { --levels_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { enter(mark, true); }
  void OnMapEnd() override { --levels_; }

 protected:
  virtual void scalar(const YAML::Mark&, const std::string&) {}
  virtual void enter(const YAML::Mark& mark, bool) {
    if (++levels_ > kMostLevels) refuse(mark, "is nested too deeply");
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, const char* what) const {
    throw DataError(fmt::format("{}:{}: {}", where_, line(mark), what));
  }
  int line(const YAML::Mark& mark) const { return mark.line + first_line_; }
  int levels_ = 0;

 private:
  const std::string& where_;
  int first_line_;
};

// Passes on the pairs of a map of scalars.
class ForeignPairs : public ForeignYamlCheck {
 public:
  using Take = std::function<void(const std::string&, const std::string&, int)>;
  ForeignPairs(const std::string& where, int first_line, const Take& take) : ForeignYamlCheck(where, first_line), take_(take) {}

 private:
  void scalar(const YAML::Mark& mark, const std::string& value) override {
    if (levels_ == 0) refuse(mark, kNotPair);
    if (!key_)
      key_ = value;
    else
      take_(*key_, value, line(mark)), key_.reset();
  }
  void enter(const YAML::Mark& mark, bool map) override {
    if (!map || ++levels_ > 1) refuse(mark, kNotPair);
  }
  static constexpr const char* kNotPair = "not a piece and its number";
  const Take& take_;
  std::optional<std::string> key_;
};

// Calls `parse` and words what yaml-cpp throws.
template <class F>
auto parsed(const std::string& where, int first_line, F parse) {
  try {
    return parse();
  } catch (const YAML::Exception& e) {
    throw DataError(fmt::format("{}:{}: not valid YAML ({})", where, e.mark.line + first_line, printable(e.msg)));
  }
}

void parse_events(const std::string& text, YAML::EventHandler& handler) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  parser.HandleNextDocument(handler);
}

// Where the pair that is under way at `at` ends: before a line that does not go on with it.
size_t end_of_pair(const std::string& text, size_t at) {
  do {
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  } while (at < text.size() && std::string_view(" \t\r\n:").find(text[at]) != std::string_view::npos);
  return at;
}

}  // namespace

YAML::Node read_foreign_yaml(const std::string& text, const std::string& where) {
  if (text.size() > kMostForeignYaml) throw DataError(fmt::format("{}: has more than {} KiB", where, kMostForeignYaml >> 10));
  return parsed(where, 1, [&] {
    ForeignYamlCheck check(where, 1);
    parse_events(text, check);
    return YAML::Load(text);
  });
}

void for_each_in_map(const std::string& text, const std::string& where,
                     const std::function<void(const std::string& key, const std::string& value, int line)>& take) {
  constexpr size_t kPart = size_t{16} << 10;
  int line = 1;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = end_of_pair(text, std::min(begin + kPart, text.size()) - 1);
    const std::string part = text.substr(begin, end - begin);
    if (part.size() > kMostForeignYaml)
      throw DataError(fmt::format("{}:{}: a pair has more than {} KiB", where, line, kMostForeignYaml >> 10));
    parsed(where, line, [&] {
      ForeignPairs pairs(where, line, take);
      parse_events(part, pairs);
    });
    line += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
  }
}

}  // namespace starling
