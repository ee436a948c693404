#include "interop/word_pieces.h"

#include <algorithm>

#include "text/word_pieces.h"

namespace starling {
namespace {

constexpr size_t kMostText = size_t{1} << 20;  // bytes of a script, or of a list of abbreviations

moses::Options options(const ForeignFiles& folder, const std::string& language) {
  moses::Options o{.language = language};
  const std::string list = "nonbreaking_prefix." + language;
  if (!language.empty() && folder.has(list)) o.abbreviations = folder.peek(list, kMostText), o.own_abbreviations = false;
  return o;
}

}  // namespace

bool is_codes(const ForeignFile& file) { return moses::SubwordNmt::is_codes(file.content); }

bool has_name_of_codes(const std::string& name) {
  const std::string plain = without_packing(name);
  return plain.ends_with(".bpe") || plain.ends_with(".codes") || plain == "bpe.model" || plain == "codes";
}

moses::Options argos_text(const ForeignFiles& folder, const std::string& language) {
  moses::Options o = options(folder, language);
  o.words = !language.empty();
  return o;
}

moses::Options marian_text(const ForeignFiles& folder, const std::string& language) {
  moses::Options o = options(folder, language);
  const std::string script = folder.has("preprocess.sh") ? folder.peek("preprocess.sh", kMostText) : "";
  const auto runs = [&](const char* what) { return script.find(what) != std::string::npos; };
  o.perl = true;
  o.words = runs("tokenizer.perl");
  o.normalise_marks = runs("normalize-punctuation.perl");
  o.plain_asian_marks = runs("replace-unicode-punctuation.perl");
  o.split_hyphens = runs("tokenizer.perl -a");
  return o;
}

Languages opus_languages(const ForeignFiles& folder) {
  constexpr std::string_view kBefore = "OPUS-MT-models/";
  const std::string readme = folder.has("README.md") ? folder.peek("README.md", kMostText) : "";
  const size_t at = readme.find(kBefore);
  if (at == std::string::npos) return {};
  const std::string pair = readme.substr(at + kBefore.size(), readme.find('/', at + kBefore.size()) - at - kBefore.size());
  const size_t hyphen = pair.find('-');
  const auto single = [](std::string_view code) { return (code.size() == 2 || code.size() == 3) && is_language_code(code); };
  if (hyphen == std::string::npos || !single(pair.substr(0, hyphen)) || !single(pair.substr(hyphen + 1))) return {};
  return {pair.substr(0, hyphen), pair.substr(hyphen + 1), {}};
}

std::string text_note(const moses::Options& source, bool codes) {
  if (!source.words)
    return codes
               ? "Codes of subword-nmt split words into pieces, but nothing says how text becomes words: give words and punctuation marks "
                 "separated by spaces, as in its training."
               : "There is no SentencePiece model, so text must be tokens separated by spaces; name one with --vocab, or codes of "
                 "subword-nmt, to translate plain text.";
  const std::string language = source.language.empty()    ? "English, since no language is known: give --source-language"
                               : source.own_abbreviations ? fmt::format("language {}", source.language)
                                                          : fmt::format("language {}, with its list of abbreviations", source.language);
  return fmt::format("Text is split as {} and subword-nmt do it ({}).", source.perl ? "Moses's scripts" : "sacremoses", language);
}

Vocabulary token_vocabulary(const std::vector<std::string>& tokens, const std::string& where, const ForeignFile* codes,
                            const moses::Options& text, ByteBudget& budget) {
  std::string message;
  if (codes) {
    budget.take(moses::SubwordNmt::bytes_of(codes->content), codes->where, "the codes of subword-nmt");
    const moses::SubwordNmt merges(codes->content, codes->where);  // throws for broken ones, with their lines
    const auto made = std::count_if(tokens.begin(), tokens.end(), [&](const std::string& t) { return merges.makes(t); });
    const auto listed = std::count_if(tokens.begin(), tokens.end(), [](const std::string& t) { return !t.starts_with('<'); });
    if (2 * made < listed && 2 * made < merges.size())  // lists of two languages have pieces of both sides' codes
      throw DataError(
          fmt::format("{}: its merges make only {} of the network's {} pieces, so it belongs to another model; give the right one",
                      codes->where, made, listed));
    message = moses::message_of({text, codes->content});
  }
  return usual_vocabulary({"", where, vocabulary_format::word_model(tokens, where, message)}, budget);
}

}  // namespace starling
