// What happens to text before it is cut into pieces. SentencePiece's own rules make full-width, compatibility and other forms ordinary
// characters, which a translation can then never contain; the rule here touches nothing that is seen. A vocabulary carries its rule.
#pragma once

#include <string>

namespace starling {

constexpr const char* kSpaces = "spaces";  // ours; the others are SentencePiece's names
constexpr int kSpaceRulesFd = 900;         // where SentencePiece finds our rule; always the same, because it writes the path into the model
constexpr const char* kSpaceRulesPath = "/proc/self/fd/900";
constexpr const char* kNormalizations[] = {kSpaces, "identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"};

/// Throws ConfigError unless `name` is one of them.
void check_normalization(const std::string& name);

/// Name and effect of a rule, for people.
std::string describe_normalization(const std::string& name);

/// The rule "spaces" as SentencePiece reads rules: a line each, code point in hexadecimal, tab, what it becomes.
std::string space_rules();

}  // namespace starling
