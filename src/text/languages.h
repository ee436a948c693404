// The languages that a model translates between, as BCP 47 codes: "en", "pt-BR", "zh-Hant". They are names for people and clients and
// select the rules for ends of sentences; a model of several target languages is told by a tag into which it is to translate.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

struct Languages {
  std::string source, target;           // "": unknown
  std::vector<std::string> directions;  // of a model that translates in several: "en:de" each
  bool operator==(const Languages&) const = default;
};

template <class Visitor>
void visit(Visitor& v, Languages& l) {
  v.field("source-language", l.source,
          "code of the source's language, such as en, pt-BR or zh-Hant; goes with the model, for clients of serve and for the ends of "
          "sentences; empty = unknown");
  v.field("target-language", l.target, "code of the target's language");
  v.field("directions", l.directions,
          "of a model for several directions: each as SOURCE:TARGET, such as en:de, en:pt-BR; those of data.train are added");
}

/// Returns whether a text has the form of a language code: letters, then subtags of letters and digits after hyphens.
bool is_language_code(std::string_view text);

/// Returns the languages that are translated from, each once; none if they are not known.
std::vector<std::string> source_languages(const Languages& languages);

/// Throws ConfigError naming `section` and the key unless both are codes or empty.
void check(const Languages& languages, const std::string& section);

/// Returns the two languages of "en:de". Throws ConfigError naming `key`.
std::pair<std::string, std::string> parse_direction(const std::string& direction, const std::string& key);

/// Returns the target languages of a model for several directions, each once; empty for others.
std::vector<std::string> target_languages(const Languages& languages);
/// Returns the piece in front of each source that tells a model of several target languages into which one it is to translate: ">>de<<".
std::string language_tag(std::string_view target);
/// Returns the tags that a model's vocabulary must have; empty if there is one target language or none is known.
std::vector<std::string> language_tags(const Languages& languages);

/// Returns the main language of a code in lower case: "en" for "EN-us" and "en_US", "" for "".
std::string main_language(std::string_view code);

}  // namespace starling
