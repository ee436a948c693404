// libFuzzer's target for documents: the splitter, the scanner of HTML, placeholders and markup. See CONTRIBUTING.md for how to run it.
#include "document/document.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "document/html.h"

namespace {

using namespace starling;

void require(bool condition) {
  if (!condition) std::abort();
}

// Whether all tags and comments of a document stand in another. They are looked for as they are: where quotes are broken, what is a tag
// depends on the text between.
bool has_tags_of(const std::string& html, const std::string& document, DocumentFormat format) {
  std::map<std::string, int> tags;
  for (const HtmlToken& t : format == DocumentFormat::xml ? scan_xml(document) : scan_html(document))
    if (t.kind != HtmlToken::text) ++tags[document.substr(t.begin, t.end - t.begin)];
  for (const auto& [tag, count] : tags) {
    int found = 0;
    for (size_t at = html.find(tag); at != std::string::npos && found < count; at = html.find(tag, at + tag.size())) ++found;
    if (found < count) return false;
  }
  return true;
}

// A translation made of pieces of the sentence, linked to others.
AlignedText mixed(const std::string& sentence, uint32_t seed) {
  AlignedText t;
  const size_t size = sentence.size();
  for (int i = 0; i < 6; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const size_t from = seed % size, to = (seed >> 8) % size, begin = t.text.size();
    t.text += sentence.substr(from, 1 + (seed >> 16) % 12) + " ";
    t.links.push_back({{static_cast<int64_t>(to), static_cast<int64_t>(std::min(size, to + 5))},
                       {static_cast<int64_t>(begin), static_cast<int64_t>(t.text.size()) - 1}});
  }
  return t;
}

}  // namespace

// The first byte chooses the language.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const char* const languages[] = {"en", "de", "ja", "zh", "fr", "th", "", "cs"};
  const char* language = languages[data[0] % 8];
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);

  const Document plain(text, DocumentFormat::text, language);
  std::vector<AlignedText> translations;
  for (const std::string& s : plain.sentences()) {
    require(!s.empty() && s.size() <= Document::kLongestSentence);
    translations.push_back({s, {}});
  }
  require(plain.assemble(translations) == text);

  for (const DocumentFormat format : {DocumentFormat::html, DocumentFormat::xml}) {
    DocumentOptions options;
    options.ends = static_cast<SentenceEnds>(data[0] / 8 % 4);
    if (data[0] & 32) options.tags = {{"b"}, {"i"}, {"p"}, (data[0] & 64) == 0};
    const Document tagged(text, format, language, options);
    tagged.words();
    translations.assign(tagged.sentences().size(), {"x", {}});
    require(has_tags_of(tagged.assemble(translations), text, format));
    for (size_t i = 0; i < translations.size(); ++i) translations[i] = mixed(tagged.sentences()[i], static_cast<uint32_t>(size + i));
    require(has_tags_of(tagged.assemble(translations), text, format));
  }
  return 0;
}
