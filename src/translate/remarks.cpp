#include "translate/remarks.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/memory.h"
#include "decode/cut_warning.h"

namespace starling {
namespace {

// What was left as it is or taken from elsewhere, because the options say so.
std::string counts_asked_for(const TranslateOptions& o, const Translator& translator) {
  const char* const unit = o.document ? "sentence" : "line";
  std::string text;
  if (!o.memory.empty()) text += fmt::format("{} came from {}\n", counted(translator.from_memory(), unit), o.memory);
  if (const int64_t other = translator.in_other_languages(); o.leaves_other_languages())
    text += fmt::format("{} in another language {} not translated\n", counted(other, unit), other == 1 ? "was" : "were");
  return text;
}

}  // namespace

std::string remarks(const TranslateOptions& o, const Translator& translator, const DocumentTranslation& documents) {
  std::string text = translator.tag_warning() + translator.piece_warning();
  if (!o.quiet) text += counts_asked_for(o, translator);
  if (translator.missing_terms() > 0)
    text += fmt::format("warning: {} of the glossary could not be placed; raise --beam\n", counted(translator.missing_terms(), "term"));
  text += cut_warning(translator, o.max_source_tokens, "use --document");
  if (translator.beginnings_cut() > 0)
    text += fmt::format("warning: the given beginnings of {} were cut at {} tokens\n", counted(translator.beginnings_cut(), "translation"),
                        translator.most_source_tokens());
  if (documents.cut() > 0)
    text += fmt::format("note: {} were translated in parts of at most {} source tokens\n", counted(documents.cut(), "long sentence"),
                        documents.most_tokens());
  return text;
}

std::string speed_line(const TranslateOptions& o, const TranslationModels& models, const Translator& translator, int64_t sentences,
                       double seconds) {
  const LoadedModel& model = models.first();
  return fmt::format(
      "{} sentences, {} tokens in {:.2f} s: {:.0f} tokens/s, {:.1f} sentences/s ({} {}, {} rows, {} on {}, peak memory {} MiB)\n",
      sentences, translator.output_tokens(), seconds, static_cast<double>(translator.output_tokens()) / seconds,
      static_cast<double>(sentences) / seconds, o.sampling ? "samples" : "beam", models.search().beam, translator.work().rows,
      model.precision, machine_text(*model.backend, model.precision == "int8"), peak_memory().own >> 20);
}

}  // namespace starling
