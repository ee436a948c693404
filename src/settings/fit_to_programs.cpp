#include "settings/fit_to_programs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "models/portability.h"

namespace starling {
namespace {

PortableVocabulary vocabulary_of(const Config& c) { return {.joint = c.vocab.joint}; }

// Marian first, since what transformers needs follows from the place of the normalisation, which Marian fixes.
std::vector<Program> programs_of(const Config& c) {
  std::vector<Program> programs;
  for (const Program p : {Program::marian, Program::bergamot, Program::ctranslate2, Program::argos, Program::huggingface})
    if (std::find(c.model_for.begin(), c.model_for.end(), word(p)) != c.model_for.end()) programs.push_back(p);
  return programs;
}

[[noreturn]] void refuse(const Config& c, const std::vector<std::string>& lines) {
  const std::string whose = c.train.initial_model.empty() ? "" : fmt::format(" (of the model in {})", c.train.initial_model);
  throw ConfigError(fmt::format("model.for is {}, but {}{}; leave these keys out, or the program", fmt::join(c.model_for, ", "),
                                fmt::join(lines, "; "), whose));
}

}  // namespace

void fit_to_programs(std::span<const ConfigSection> sections, Config& c) {
  std::vector<std::string> refused;
  std::map<std::string, Program> set;
  const bool fixed = !c.train.initial_model.empty();
  for (const Program program : programs_of(c)) {
    for (bool more = !fixed; more;) {  // one key may ask for another
      more = false;
      for (const Obstacle& o : obstacles(program, c.model, vocabulary_of(c), {.exact = true}))
        if (!o.set.empty() && !c.named.contains(o.key) && set.emplace(o.key, program).second) {
          apply_override(sections, o.key, o.set);
          more = true;
        }
    }
    for (const Obstacle& o : obstacles(program, c.model, vocabulary_of(c))) {
      refused.push_back(o.text(program));
      if (const auto other = set.find(o.key); other != set.end()) refused.back() += fmt::format(", which {} needs", name_of(other->second));
    }
  }
  if (!refused.empty()) refuse(c, refused);
}

std::string destinations_text(const Config& c) { return destinations_text(c.model, vocabulary_of(c), c.model_for); }

}  // namespace starling
