// Normalisation of text before it is split into pieces. SentencePiece's own rules turn full-width, compatibility and other forms into
// ordinary characters, so that a translation can never contain those forms; our rule changes nothing visible. A vocabulary stores its rule.
#pragma once

#include <string>

namespace starling {

constexpr const char* kSpaces = "spaces";  // ours; the others are SentencePiece's names
constexpr int kSpaceRulesFd = 900;         // where SentencePiece finds our rule; always the same, because it writes the path into the model
constexpr const char* kSpaceRulesPath = "/proc/self/fd/900";
constexpr const char* kNormalizations[] = {kSpaces, "identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"};

/// Throws ConfigError unless `name` is one of them.
void check_normalization(const std::string& name);

/// Describes a rule for people: its name and its effect.
std::string describe_normalization(const std::string& name);

/// Returns the rule "spaces" in SentencePiece's format: one line per code point, in hexadecimal, then a tab and its replacement.
std::string space_rules();

}  // namespace starling
