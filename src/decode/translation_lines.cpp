#include "decode/translation_lines.h"

#include <fmt/ranges.h>

namespace starling {
namespace {

std::string confidence_text(const Confidence& confidence) {
  std::string text = fmt::format("Confidence= {:.4f} WordConfidence=", confidence.sentence);
  for (const Confidence::Word& word : confidence.words) text += fmt::format(" {:.4f}", word.value);
  return text;
}

}  // namespace

std::string translation_lines(std::span<const Translation> translations, int64_t number, std::string_view source,
                              const Translator& translator, const LineFormat& f) {
  std::string lines;
  for (const Translation& t : translations.first(f.list ? translations.size() : 1)) {
    std::string text = t.text;
    if (f.soft_alignment) text += " ||| " + soft_alignment_text(t.hypothesis);
    if (f.alignment) text += " ||| " + translator.alignment(source, t, *f.alignment, f.alignment_threshold);
    if (f.scores) text += fmt::format(" ||| WordScores= {:.5f}", fmt::join(translator.word_scores(t, *f.scores), " "));
    if (f.confidence) text += " ||| " + confidence_text(translator.confidence(t, *f.confidence));
    lines += f.list ? fmt::format("{} ||| {} ||| {:.6f} ||| {:.6f}\n", number, text, t.log_probability, t.score) : text + "\n";
  }
  return lines;
}

}  // namespace starling
