#include "config/foreign_yaml.h"

#include <yaml-cpp/eventhandler.h>

#include <sstream>

#include "base/error.h"

namespace starling {
namespace {

constexpr int kMostLevels = 32;  // Marian's and OpenNMT-py's configurations have four

// Sees the document as it is parsed, before nodes are made of it.
class ForeignYamlCheck : public YAML::EventHandler {
 public:
  explicit ForeignYamlCheck(const std::string& where) : where_(where) {}
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "has an alias (*NAME), which is not read; write the value out");
  }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { enter(mark); }
  void OnSequenceEnd() override { --levels_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override { enter(mark); }
  void OnMapEnd() override { --levels_; }

 private:
  void enter(const YAML::Mark& mark) {
    if (++levels_ > kMostLevels) refuse(mark, "is nested too deeply");
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, const char* what) const {
    throw DataError(fmt::format("{}:{}: {}", where_, mark.line + 1, what));
  }
  const std::string& where_;
  int levels_ = 0;
};

}  // namespace

YAML::Node read_foreign_yaml(const std::string& text, const std::string& where, size_t most_bytes) {
  if (text.size() > most_bytes) throw DataError(fmt::format("{}: is larger than {} MiB", where, most_bytes >> 20));
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    ForeignYamlCheck check(where);
    parser.HandleNextDocument(check);
    return YAML::Load(text);
  } catch (const YAML::Exception& e) {
    throw DataError(fmt::format("{}:{}: not valid YAML ({})", where, e.mark.line + 1, e.msg));
  }
}

}  // namespace starling
