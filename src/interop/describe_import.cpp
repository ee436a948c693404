#include "interop/describe_import.h"

#include <fmt/format.h>

#include "config/words.h"

namespace starling {

std::string import_text(const ImportedModel& m, const std::string& directory) {
  const ModelConfig& c = m.config;
  int64_t weights = 0;
  for (const OwnedTensor& t : m.tensors) {
    int64_t count = 1;
    for (const int64_t n : t.shape) count *= n;
    weights += count;
  }
  std::string text = fmt::format("read       {}\n", m.kind);
  text += fmt::format("model      {}+{} layers, width {}, feed-forward {} ({}), {} heads, {}-norm{}{}; {:.1f} million weights\n",
                      c.encoder_layers, c.decoder_layers, c.width, c.feed_forward, c.activation, c.heads, c.norm,
                      c.autoregression == Autoregression::ssru ? ", SSRU" : "", c.output_bias ? ", output bias" : "",
                      static_cast<double>(weights) / 1e6);
  text += fmt::format("vocabulary {} pieces{}\n", m.vocabularies.target().size(),
                      m.vocabularies.joint() ? " of both languages" : fmt::format(", of the source {}", m.vocabularies.source().size()));
  text += fmt::format("search     beam {}, length penalty {} ({})\n", m.search.beam, m.search.length_penalty, m.search.length_penalty_form);
  for (const std::string& note : m.notes) text += fmt::format("note       {}\n", note);
  for (const Part& part : m.further_files) text += fmt::format("kept       {}\n", part.name);
  text += fmt::format("written    {}\n\nTranslate with: starling translate --model {} < input.txt\n", directory, directory);
  return text;
}

}  // namespace starling
