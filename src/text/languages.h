// The languages that a model translates between, as BCP 47 codes: "en", "pt-BR", "zh-Hant". They are names for people and clients and
// select the rules for ends of sentences; what the model computes does not depend on them.
#pragma once

#include <string>
#include <string_view>

namespace starling {

struct Languages {
  std::string source, target;  // "": unknown
  bool operator==(const Languages&) const = default;
};

template <class Visitor>
void visit(Visitor& v, Languages& l) {
  v.field("source-language", l.source,
          "code of the source's language, such as en, pt-BR or zh-Hant; goes with the model, for clients of serve and for the ends of "
          "sentences; empty = unknown");
  v.field("target-language", l.target, "code of the target's language");
}

/// Returns whether a text has the form of a language code: letters, then subtags of letters and digits after hyphens.
bool is_language_code(std::string_view text);

/// Throws ConfigError naming `section` and the key unless both are codes or empty.
void check(const Languages& languages, const std::string& section);

/// Returns the main language of a code in lower case: "en" for "EN-us" and "en_US", "" for "".
std::string main_language(std::string_view code);

}  // namespace starling
