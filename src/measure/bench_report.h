// What `starling bench` prints: text for people, or JSON for scripts.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "measure/bench_translate.h"

namespace starling {

/// `format` is "text" or "json".
void print(std::ostream& out, const BenchTrainResult& result, const std::string& format);
void print(std::ostream& out, const BenchTranslateResult& result, int64_t batch_sentences, const std::string& format);
void print(std::ostream& out, const BenchLimits& limits, const std::string& format);

}  // namespace starling
