// SentencePiece does not check bounds in what it loads: a flipped bit in a model file can make it read outside its tables. Hence the
// checksum and, for files written by other programs, the check of the normalisation table below.
#include "text/vocabulary.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "text/canonical_text.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";  // as SentencePiece writes a space

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;  // a million pieces take some 30 MB

[[noreturn]] void damaged(const std::string& name, const std::string& why) {
  throw DataError(fmt::format("{}: not a usable SentencePiece model ({}); restore the file or train it again", name, why));
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
    : processor_(std::move(processor)), bytes_(std::move(bytes)) {
  size_ = vocabulary_format::numbered(bytes_);
  unk_ = processor_->unk_id();
  bos_ = processor_->bos_id() < size_ ? processor_->bos_id() : -1;
  eos_ = processor_->eos_id();
  pad_ = processor_->pad_id() < size_ ? processor_->pad_id() : -1;
  if (unk_ < 0 || eos_ < 0 || unk_ >= size_ || eos_ >= size_) damaged(name, "it lacks <unk> or </s>");
  hash_ = vocabulary_format::hash(bytes_);
  const auto settings = vocabulary_format::settings(bytes_);
  words_ = settings && settings->type == "word";
}

Vocabulary::Vocabulary(Vocabulary&&) noexcept = default;
Vocabulary& Vocabulary::operator=(Vocabulary&&) noexcept = default;
Vocabulary::~Vocabulary() = default;

template <typename Piece>
std::vector<Piece> Vocabulary::cut(std::string_view text) const {
  std::vector<Piece> pieces, of_part;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, first_part(text));
    text.remove_prefix(part.size());
    const auto status = processor_->Encode(part, &of_part);
    if (!status.ok()) throw DataError(fmt::format("a line of {} bytes could not be cut into pieces: {}", part.size(), status.ToString()));
    if constexpr (std::is_same_v<Piece, int>)
      for (int& id : of_part) id = id < size_ ? id : unk_;
    pieces.insert(pieces.end(), of_part.begin(), of_part.end());
  }
  return pieces;
}

std::vector<std::string> Vocabulary::pieces(std::string_view text) const { return cut<std::string>(text); }

EncodedLine Vocabulary::cut_with_bytes(std::string_view text) const {
  EncodedLine line;
  for (int64_t begin = 0; !text.empty();) {
    const std::string_view part = text.substr(0, first_part(text));
    const auto pieces = processor_->EncodeAsImmutableProto(part);
    for (const auto& piece : pieces.pieces()) {
      line.ids.push_back(static_cast<int64_t>(piece.id()) < size_ ? static_cast<int32_t>(piece.id()) : unk_);
      line.bytes.push_back({begin + piece.begin(), begin + piece.end()});
    }
    begin += static_cast<int64_t>(part.size());
    text.remove_prefix(part.size());
  }
  return line;
}

bool Vocabulary::is_unknown(int32_t id) const { return id == unk_ || processor_->IsByte(id); }
bool Vocabulary::all_known(std::span<const int32_t> ids) const {
  return std::none_of(ids.begin(), ids.end(), [&](int32_t id) { return is_unknown(id); });
}
bool Vocabulary::knows(std::string_view text) const { return !is_unknown(processor_->PieceToId(text)) || all_known(cut<int>(text)); }

std::vector<int32_t> Vocabulary::encode_as_it_stands(std::string_view text) const { return cut<int>(text); }

EncodedLine Vocabulary::encode_as_it_stands_with_bytes(std::string_view text) const { return cut_with_bytes(text); }

std::vector<int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<int32_t> ids = cut<int>(text);
  if (all_known(ids)) return ids;
  const auto canonical = canonical_text(text, [&](std::string_view part) { return knows(part); });
  return canonical ? cut<int>(canonical->text) : ids;
}

EncodedLine Vocabulary::encode_with_bytes(std::string_view text) const {
  EncodedLine line = cut_with_bytes(text);
  if (all_known(line.ids)) return line;
  const auto canonical = canonical_text(text, [&](std::string_view part) { return knows(part); });
  if (!canonical) return line;
  line = cut_with_bytes(canonical->text);
  const auto source = [&](int64_t at) { return canonical->source[static_cast<size_t>(at)]; };
  for (Range& r : line.bytes) r = {source(r.begin), source(r.end)};
  return line;
}

DecodedLine Vocabulary::decode_with_bytes(std::span<const int32_t> ids) const {
  check_ids(ids);
  const auto pieces = processor_->DecodeIdsAsImmutableProto(std::vector<int>(ids.begin(), ids.end()));
  DecodedLine line{pieces.text(), {}};
  for (const auto& piece : pieces.pieces()) line.bytes.push_back({piece.begin(), piece.end()});
  return line;
}

void Vocabulary::check_ids(std::span<const int32_t> ids) const {
  for (const int32_t id : ids)
    if (id < 0 || id >= size_)
      throw DataError(fmt::format("id {} is outside the vocabulary of {} pieces; does it belong to this model?", id, size_));
}

std::string Vocabulary::decode(std::span<const int32_t> ids) const {
  check_ids(ids);
  std::string text;
  const auto status = processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  if (!status.ok()) throw DataError(fmt::format("{} ids could not be turned into text: {}", ids.size(), status.ToString()));
  return text;
}

int32_t Vocabulary::id_of(const std::string& piece) const {
  const int id = processor_->PieceToId(piece);
  return id < size_ && processor_->IdToPiece(id) == piece ? id : -1;
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
    if (id < 0) throw ConfigError(fmt::format("{}: the vocabulary has no piece '{}'; pieces are separated by spaces", key, piece));
    ids.push_back(id);
  }
  return ids;
}

std::string Vocabulary::piece(int32_t id) const {
  CHECK(id >= 0 && id < size_, "id {} of {} pieces", id, size_);
  return processor_->IdToPiece(id);
}

}  // namespace starling
