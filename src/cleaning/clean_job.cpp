#include "cleaning/clean_job.h"

#include <algorithm>

#include "base/quotes.h"
#include "config/config.h"

namespace starling {

CleanOptions corpus_options(const CleanJob& job, const CorpusFiles& corpus) {
  constexpr std::string_view kOfAll[] = {"copies",     "near-copies", "max-same-source", "max-same-target",
                                         "best-share", "best-words",  "before-training"};
  CleanOptions options = job.options;
  for (const std::string& own : corpus.clean) {
    const size_t equals = own.find_first_of("=:");
    if (equals == own.npos)
      throw ConfigError(fmt::format("clean of the corpus {}: '{}' is no key=value; write such as language=false", printable(corpus.name()),
                                    printable(own)));
    const std::string key = own.substr(0, equals);
    std::string value = own.substr(equals + 1);
    value.erase(0, value.find_first_not_of(' '));
    if (std::find(std::begin(kOfAll), std::end(kOfAll), key) != std::end(kOfAll))
      throw ConfigError(fmt::format("clean of the corpus {}: {} is about all corpora together; set clean.{} for them",
                                    printable(corpus.name()), key, key));
    apply_override(config_sections("clean", "", options), "clean." + key, value);
  }
  return options;
}

}  // namespace starling
