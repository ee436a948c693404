// SentencePiece does not check bounds in what it loads: a flipped bit in a model file can make it read outside its tables. Hence the
// checksum and, for files written by other programs, the check of the normalisation table below.
#include "text/vocabulary.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "text/canonical_text.h"
#include "text/listed_pieces.h"
#include "text/vocabulary_format.h"
#include "text/word_pieces.h"

namespace starling {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";  // as SentencePiece writes a space

constexpr const char* kUnknownText = "\u2047";  // as SentencePiece writes what it does not know

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;  // a million pieces take some 30 MB

[[noreturn]] void damaged(const std::string& name, const std::string& why) {
  throw DataError(fmt::format("{}: not a usable SentencePiece model ({}); restore the file or train it again", name, printable(why)));
}

// SentencePiece takes quadratic time on long runs of unknown characters (hours for a megabyte of them), so text is passed to it in parts
// of at most this many bytes. Splitting at a space does not change the pieces, because none spans a space.
constexpr size_t kPartBytes = 4096;

// Returns the bytes of the part to encode first: everything, or up to the last space, or up to a whole character.
size_t first_part(std::string_view text) {
  if (text.size() <= kPartBytes) return text.size();
  const size_t space = text.rfind(' ', kPartBytes);
  if (space != std::string_view::npos && space > 0) return space;
  size_t end = kPartBytes;
  while (end > 1 && is_continuation(text[end])) --end;
  return end;
}

}  // namespace

Vocabulary Vocabulary::load(const std::string& path) { return load(*real_file_system(), path); }
Vocabulary Vocabulary::load(FileSystem& files, const std::string& path) { return from_bytes(files.read_file(path, kMaxFileBytes), path); }

Vocabulary Vocabulary::from_bytes(std::string bytes, const std::string& name) {
  if (const auto why = vocabulary_format::defect(bytes)) damaged(name, *why);
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  std::string message;
  try {
    const auto status = processor->LoadFromSerializedProto(bytes);
    if (!status.ok()) message = status.ToString();
  } catch (const std::exception& error) {  // the trie builder throws
    message = error.what();
  }
  if (!message.empty()) damaged(name, message);
  return Vocabulary(std::move(processor), std::move(bytes), name);
}

Vocabulary::Vocabulary(std::unique_ptr<sentencepiece::SentencePieceProcessor> processor, std::string bytes, const std::string& name)
    : processor_(std::move(processor)), bytes_(std::move(bytes)), listed_(std::make_unique<ListedPieces>(bytes_)) {
  size_ = vocabulary_format::numbered(bytes_);
  unk_ = processor_->unk_id();
  bos_ = processor_->bos_id() < size_ ? processor_->bos_id() : -1;
  eos_ = processor_->eos_id();
  pad_ = processor_->pad_id() < size_ ? processor_->pad_id() : -1;
  if (unk_ < 0 || eos_ < 0 || unk_ >= size_ || eos_ >= size_) damaged(name, "it lacks <unk> or </s>");
  hash_ = vocabulary_format::hash(bytes_);
  const auto settings = vocabulary_format::settings(bytes_);
  words_ = settings && settings->type == "word";
  if (auto word_pieces = words_ ? moses::settings_of(bytes_) : std::nullopt)
    word_pieces_ = std::make_unique<moses::WordPieces>(std::move(*word_pieces), name);
}

Vocabulary::Vocabulary(Vocabulary&&) noexcept = default;
Vocabulary& Vocabulary::operator=(Vocabulary&&) noexcept = default;
Vocabulary::~Vocabulary() = default;

void Vocabulary::each_part(std::string_view text, const std::function<void(std::string_view)>& part,
                           const std::function<void(int32_t, std::string_view)>& token) const {
  for (auto [rest, id] : listed_->parts(text)) {
    if (id >= 0) {
      token(id, rest);
      continue;
    }
    while (!rest.empty()) {
      const std::string_view first = rest.substr(0, first_part(rest));
      rest.remove_prefix(first.size());
      part(first);
    }
  }
}

std::vector<int> Vocabulary::cut(std::string_view text) const {
  std::vector<int> ids, of_part;
  std::vector<std::string> pieces;
  if (word_pieces_) {
    for (const moses::Piece& piece : word_pieces_->pieces(text)) ids.push_back(number_of_token(piece.text));
    return ids;
  }
  const auto encode = [&](std::string_view part, auto* to) {
    const auto status = processor_->Encode(part, to);
    if (!status.ok()) throw DataError(fmt::format("a line of {} bytes could not be cut into pieces: {}", part.size(), status.ToString()));
  };
  const auto part = [&](std::string_view text) {
    encode(text, &of_part);
    const bool look = listed_->any_whole() && std::find(of_part.begin(), of_part.end(), unk_) != of_part.end();
    if (look) encode(text, &pieces);
    for (size_t i = 0; i < of_part.size(); ++i) {
      int id = of_part[i] < size_ ? of_part[i] : unk_;
      if (look && of_part[i] == unk_) id = listed_->whole(pieces[i]);
      ids.push_back(id < 0 ? unk_ : id);
    }
  };
  each_part(text, part, [&](int32_t id, std::string_view) { ids.push_back(id); });
  return ids;
}

std::vector<std::string> Vocabulary::pieces(std::string_view text) const {
  std::vector<std::string> all;
  if (word_pieces_) {
    for (moses::Piece& piece : word_pieces_->pieces(text)) all.push_back(std::move(piece.text));
    return all;
  }
  const auto part = [&](std::string_view text) {
    std::vector<std::string> of_part;
    const auto status = processor_->Encode(text, &of_part);
    if (!status.ok()) throw DataError(fmt::format("a line of {} bytes could not be cut into pieces: {}", text.size(), status.ToString()));
    std::move(of_part.begin(), of_part.end(), std::back_inserter(all));
  };
  each_part(text, part, [&](int32_t, std::string_view token) { all.emplace_back(token); });
  return all;
}

EncodedLine Vocabulary::cut_with_bytes(std::string_view text) const {
  EncodedLine line;
  if (word_pieces_) {
    for (const moses::Piece& piece : word_pieces_->pieces(text)) {
      line.ids.push_back(number_of_token(piece.text));
      line.bytes.push_back(piece.bytes);
    }
    return line;
  }
  const auto range = [&](std::string_view part, int64_t begin, int64_t end) {
    const int64_t at = part.data() - text.data();
    line.bytes.push_back({at + begin, at + end});
  };
  const auto part = [&](std::string_view of_text) {
    const auto pieces = processor_->EncodeAsImmutableProto(of_text);
    for (const auto& piece : pieces.pieces()) {
      auto id = static_cast<int32_t>(piece.id());
      if (id == unk_) id = listed_->whole(piece.piece());
      line.ids.push_back(id < 0 || id >= size_ ? unk_ : id);
      range(of_text, piece.begin(), piece.end());
    }
  };
  each_part(text, part, [&](int32_t id, std::string_view token) {
    line.ids.push_back(id);
    range(token, 0, std::ssize(token));
  });
  return line;
}

int32_t Vocabulary::take_tag(std::string_view& text) const {
  const std::string_view unknown = listed_->unknown_tag(text);
  if (unknown.empty()) return listed_->take_tag(text);
  text.remove_prefix(static_cast<size_t>(unknown.data() + unknown.size() - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return unk_;
}

bool Vocabulary::is_unknown(int32_t id) const { return id == unk_ || processor_->IsByte(id); }
bool Vocabulary::all_known(std::span<const int32_t> ids) const {
  return std::none_of(ids.begin(), ids.end(), [&](int32_t id) { return is_unknown(id); });
}
bool Vocabulary::knows(std::string_view text) const {
  const int id = processor_->PieceToId(text);
  return (!is_unknown(id) && id < size_ && !processor_->IsUnused(id)) || all_known(cut(text));
}

std::vector<int32_t> Vocabulary::encode_as_it_stands(std::string_view text) const { return cut(text); }

EncodedLine Vocabulary::encode_as_it_stands_with_bytes(std::string_view text) const { return cut_with_bytes(text); }

std::vector<int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<int32_t> ids = cut(text);
  if (word_pieces_ || all_known(ids)) return ids;
  const auto canonical = canonical_text(text, [&](std::string_view part) { return knows(part); });
  return canonical ? cut(canonical->text) : ids;
}

EncodedLine Vocabulary::encode_with_bytes(std::string_view text) const {
  EncodedLine line = cut_with_bytes(text);
  if (word_pieces_ || all_known(line.ids)) return line;
  const auto canonical = canonical_text(text, [&](std::string_view part) { return knows(part); });
  if (!canonical) return line;
  line = cut_with_bytes(canonical->text);
  const auto source = [&](int64_t at) { return canonical->source[static_cast<size_t>(at)]; };
  for (Range& r : line.bytes) r = {source(r.begin), source(r.end)};
  return line;
}

DecodedLine Vocabulary::decoded(std::span<const int32_t> ids) const {
  const auto pieces = processor_->DecodeIdsAsImmutableProto(std::vector<int>(ids.begin(), ids.end()));
  DecodedLine line{pieces.text(), {}};
  for (const auto& piece : pieces.pieces()) line.bytes.push_back({piece.begin(), piece.end()});
  return line;
}

DecodedLine Vocabulary::joined(std::span<const int32_t> ids) const {
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.push_back(id == unk_ ? kUnknownText : processor_->IsControl(id) ? "" : token(id));
  moses::JoinedText text = word_pieces_->join(pieces);
  return {std::move(text.text), std::move(text.bytes)};
}

// SentencePiece writes what stands between pieces that it does not write. It drops a space at the beginning of a text, but here that is
// often not the beginning. Each side of an added token gets a space.
DecodedLine Vocabulary::decode_with_bytes(std::span<const int32_t> ids) const {
  check_ids(ids);
  if (word_pieces_) return joined(ids);
  const auto ours = [&](int32_t id) { return listed_->written(id); };
  if (std::none_of(ids.begin(), ids.end(), ours)) return decoded(ids);
  DecodedLine line;
  bool after_added = false;
  // Appends a text whose piece number `first` is the first that can be seen, and gets the space in front.
  const auto append = [&](const DecodedLine& more, size_t first, bool space) {
    space = space && !line.text.empty();
    const int64_t offset = std::ssize(line.text) + space;
    for (size_t i = 0; i < more.bytes.size(); ++i)
      line.bytes.push_back({more.bytes[i].begin + offset - (space && i == first), more.bytes[i].end + offset});
    if (space) line.text += ' ';
    line.text += more.text;
  };
  for (size_t begin = 0, end; begin < ids.size(); begin = end) {
    end = begin + 1;
    if (ours(ids[begin])) {
      std::string text = piece(ids[begin]);
      const bool added = listed_->found(ids[begin]) == vocabulary_format::Found::added;
      for (size_t at; !added && (at = text.find(kSpaceMark)) != std::string::npos;) text.replace(at, kSpaceMark.size(), " ");
      if (!added && line.text.empty() && text.starts_with(' ')) text.erase(0, 1);
      const bool apart = added ? !line.text.ends_with(' ') : after_added && !text.starts_with(' ');
      append({text, {{0, std::ssize(text)}}}, 0, apart);
      after_added = added;
      continue;
    }
    while (end < ids.size() && !ours(ids[end])) ++end;
    const auto part = ids.subspan(begin, end - begin);
    const auto seen = std::find_if(part.begin(), part.end(), [&](int32_t id) { return !processor_->IsControl(id); });
    const bool space = seen != part.end() && (after_added || processor_->IdToPiece(*seen).starts_with(kSpaceMark));
    append(decoded(part), static_cast<size_t>(seen - part.begin()), space);
    after_added = after_added && seen == part.end();
  }
  return line;
}

void Vocabulary::check_ids(std::span<const int32_t> ids) const {
  for (const int32_t id : ids)
    if (id < 0 || id >= size_)
      throw DataError(fmt::format("id {} is outside the vocabulary of {} pieces; does it belong to this model?", id, size_));
}

std::string Vocabulary::decode(std::span<const int32_t> ids) const {
  check_ids(ids);
  if (word_pieces_) return joined(ids).text;
  if (std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return listed_->written(id); })) return decode_with_bytes(ids).text;
  std::string text;
  const auto status = processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) throw DataError(fmt::format("{} ids could not be turned into text: {}", ids.size(), status.ToString()));
  return text;
}

int32_t Vocabulary::id_of(const std::string& piece) const {
  const int id = processor_->PieceToId(piece);
  return id < size_ && processor_->IdToPiece(id) == piece ? id : listed_->id_of(piece);
}

int32_t Vocabulary::number_of_token(const std::string& token) const {
  const int id = processor_->PieceToId(std::string(kSpaceMark) + token);
  return id < size_ ? id : unk_;
}

int32_t Vocabulary::token_id(const std::string& token) const {
  const int32_t id = words_ ? id_of(std::string(kSpaceMark) + token) : -1;
  return id >= 0 ? id : id_of(token);
}

std::string Vocabulary::token(int32_t id) const {
  const std::string text = piece(id);
  return words_ && text.size() > kSpaceMark.size() && text.starts_with(kSpaceMark) ? text.substr(kSpaceMark.size()) : text;
}

std::vector<int32_t> Vocabulary::ids_of(std::string_view pieces, const std::string& key) const {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin < pieces.size();) {
    const size_t end = std::min(pieces.find(' ', begin), pieces.size());
    const std::string piece(pieces.substr(begin, end - begin));
    begin = end + 1;
    if (piece.empty()) continue;
    const int32_t id = token_id(piece);
    if (id < 0) throw ConfigError(fmt::format("{}: the vocabulary has no piece {}; pieces are separated by spaces", key, in_quotes(piece)));
    ids.push_back(id);
  }
  return ids;
}

std::string Vocabulary::piece(int32_t id) const {
  CHECK(id >= 0 && id < size_, "id {} of {} pieces", id, size_);
  const std::string* const listed = listed_->text(id);
  return listed ? *listed : processor_->IdToPiece(id);
}

}  // namespace starling
