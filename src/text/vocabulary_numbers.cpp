// SentencePiece models for networks that number their pieces themselves.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/quotes.h"
#include "text/vocabulary_fields.h"
#include "text/vocabulary_format.h"

namespace starling::vocabulary_format {
namespace {

constexpr std::string_view kRow = "<row ";
constexpr uint64_t kControl = 3, kUnused = 5;  // types of pieces

// How a piece is found that the SentencePiece model does not have and the tokenizer does not treat by itself.
Found usually_found(std::string_view piece) {
  constexpr std::array<std::string_view, 6> kSymbols{"<unk>", "<s>", "</s>", "<pad>", "<blank>", "<mask>"};
  if (std::find(kSymbols.begin(), kSymbols.end(), piece) != kSymbols.end() || is_row_without_piece(piece)) return Found::usual;
  return has_form_of_tag(piece) ? Found::tag : Found::whole;
}

// The message of a piece that only the network's list has. SentencePiece never finds unused pieces of a unigram model, but writes them.
// Other models would find them, or split text differently: there SentencePiece gets a name that no text has.
std::string listed_piece(std::string_view text, Found found, bool unigram, size_t number) {
  std::string message;
  const bool hidden = !unigram && found != Found::usual;
  append_field(message, kPieceText, hidden ? fmt::format("<listed {}>", number) : std::string(text));
  append_field(message, kPieceType, unigram && found == Found::whole ? kUnused : kControl);
  if (found != Found::usual) append_field(message, kPieceFound, static_cast<uint64_t>(found));
  if (hidden) append_field(message, kPieceOwnText, text);
  return message;
}

}  // namespace

std::string row_without_piece(int64_t number) { return fmt::format("{}{}>", kRow, number); }
bool is_row_without_piece(std::string_view piece) { return piece.starts_with(kRow) && piece.ends_with('>'); }

bool has_form_of_tag(std::string_view piece) {
  return piece.size() > 4 && piece.starts_with(">>") && piece.ends_with("<<") &&
         piece.substr(2, piece.size() - 4).find_first_of("<> ") == std::string_view::npos;
}

std::string word_model(std::span<const std::string> pieces, const std::string& name, std::string_view word_pieces) {
  constexpr uint64_t kUnknown = 2, kWord = 3;    // a type of pieces, and one of models
  constexpr std::string_view kSpace = "\u2581";  // as SentencePiece writes a space
  std::unordered_set<std::string_view> taken;
  std::string result;
  for (const std::string& text : pieces) {
    if (!taken.insert(text).second) throw DataError(fmt::format("{}: {} is listed twice", name, in_quotes(text)));
    const bool unknown = text == "<unk>";
    const bool control = text == "<s>" || text == "</s>" || text == "<blank>" || text == "<pad>" || is_row_without_piece(text);
    std::string message;
    append_field(message, kPieceText, unknown || control ? text : std::string(kSpace) + text);
    if (unknown || control) append_field(message, kPieceType, unknown ? kUnknown : kControl);
    append_field(result, kPieces, has_form_of_tag(text) ? listed_piece(text, Found::tag, false, taken.size() - 1) : message);
  }
  for (const std::string_view special : {"<unk>", "</s>"})
    if (!taken.contains(special)) throw DataError(fmt::format("{}: {} is missing in the list of pieces", name, special));
  std::string trainer, normalizer;
  append_field(trainer, kModelType, kWord);
  append_field(trainer, kVocabularySize, pieces.size());
  append_field(normalizer, kRuleName, std::string_view("identity"));
  append_field(result, kTrainer, trainer);
  append_field(result, kNormalizer, normalizer);
  if (!word_pieces.empty()) append_field(result, kWordPieces, word_pieces);
  const std::string sum = little_endian(hash(result));
  return result.append(kChecksumTag).append(sum);
}

std::string renumbered(std::string_view model, const Listing& listing, const std::string& name) {
  std::unordered_map<std::string_view, std::string_view> messages;
  std::vector<std::string_view> order;  // texts as in the model
  std::string rest, result;
  Fields fields(model);
  Field field;
  while (fields.next(field)) {
    if (field.number == kPieces) {
      std::string_view text;
      bool own = true;  // not from the list of an earlier import
      Fields inner(field.bytes);
      for (Field f; inner.next(f);) {
        if (f.number == kPieceText) text = f.bytes;
        if (f.number == kPieceFound) own = false;
      }
      if (own && messages.emplace(text, field.bytes).second) order.push_back(text);
    } else if (field.number == kTrainer || field.number == kNormalizer || field.number == kDenormalizer) {
      append_field(rest, field.number, field.bytes);
    }
  }
  const auto made = settings(model);
  const bool unigram = !made || made->type == "unigram";
  std::unordered_set<std::string_view> taken;
  size_t shared = 0, foreign = 0;  // pieces of text that the model has, and does not have
  for (const std::string& text : listing.pieces) {
    if (!taken.insert(text).second) throw DataError(fmt::format("{}: piece {} is listed twice", name, in_quotes(text)));
    const auto special = listing.found.find(text);
    const auto own = messages.find(text);
    if (special == listing.found.end() && usually_found(text) == Found::whole) ++(own != messages.end() ? shared : foreign);
    if (special == listing.found.end() && own != messages.end())
      append_field(result, kPieces, own->second);
    else
      append_field(result, kPieces,
                   listed_piece(text, special == listing.found.end() ? usually_found(text) : special->second, unigram, taken.size() - 1));
  }
  // Lists of two languages have pieces of both sides' models, and small lists few of one.
  if (shared < foreign && 2 * shared < order.size())
    throw DataError(fmt::format("{}: it has only {} of the network's {} pieces of text, so it belongs to another model; give the right one",
                                name, shared, shared + foreign));
  for (const std::string_view special : {"<unk>", "</s>"})
    if (!taken.contains(special) || !messages.contains(special))
      throw DataError(
          fmt::format("{}: {} is missing in the list of pieces or in the SentencePiece model; do they belong together?", name, special));
  bool all = true;
  for (const std::string_view text : order)
    if (!taken.contains(text)) {
      append_field(result, kPieces, messages.at(text));
      all = false;
    }
  result += rest;
  if (!all) append_field(result, kNumbered, listing.pieces.size());
  const std::string sum = little_endian(hash(result));
  return result.append(kChecksumTag).append(sum);
}

}  // namespace starling::vocabulary_format
