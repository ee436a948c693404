// Text to subword ids and back: SentencePiece behind four functions, so that nothing else in Starling depends on its headers.
// A vocabulary is its serialized bytes: it is hashed, copied and stored with the model as such, and is a normal SentencePiece
// model file plus a checksum in a field that SentencePiece ignores. Imported models of Moses and subword-nmt have their list of pieces in
// such a file too, and how text becomes pieces in a further field; SentencePiece then only numbers them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace starling {

// The ids of a line and the bytes of the line that each stands for, in order, without gaps except for spaces that are dropped.
struct EncodedLine {
  std::vector<int32_t> ids;
  std::vector<Range> bytes;
};
// The text of ids and the bytes of it that each id became; the range is empty for ids that yield no text.
struct DecodedLine {
  std::string text;
  std::vector<Range> bytes;
};

class FileSystem;
class ListedPieces;
namespace moses {
class WordPieces;
}

class Vocabulary {
 public:
  /// Reads a SentencePiece model; throws IoError if the file cannot be read, DataError if it is damaged or lacks <unk> or </s>.
  static Vocabulary load(const std::string& path);
  static Vocabulary load(FileSystem& files, const std::string& path);
  /// The same from memory; `name` stands for the path in messages.
  static Vocabulary from_bytes(std::string bytes, const std::string& name = "vocabulary");

  Vocabulary(Vocabulary&&) noexcept;
  Vocabulary& operator=(Vocabulary&&) noexcept;
  ~Vocabulary();

  /// Returns the ids of a line of text, without end of sentence; empty for blank text. If the line contains something that the vocabulary
  /// does not know, the ids are those of its canonical_text(). A tag of a language is text here, see take_tag(). Safe to call from several
  /// threads.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The same without canonical_text(): for training text, whose tokens must not change for a resumed run.
  std::vector<int32_t> encode_as_it_stands(std::string_view text) const;
  EncodedLine encode_as_it_stands_with_bytes(std::string_view text) const;
  /// Returns the text of ids; control symbols (bos, eos) are dropped, unknown pieces become " ⁇ ". Throws DataError for ids outside the
  /// vocabulary.
  std::string decode(std::span<const int32_t> ids) const;
  /// Like encode() and decode(), with the bytes that each id stands for.
  EncodedLine encode_with_bytes(std::string_view text) const;
  DecodedLine decode_with_bytes(std::span<const int32_t> ids) const;
  /// Returns the text of the pieces of a line, without canonical_text(); what the vocabulary does not know appears as in the line.
  std::vector<std::string> pieces(std::string_view text) const;
  /// Returns whether a text can be split entirely into pieces that stand for text, none of them unknown or a byte.
  bool knows(std::string_view text) const;
  /// Returns the number of a piece; -1 if there is none.
  int32_t id_of(const std::string& piece) const;
  /// The same for tokens as other programs have them: in a vocabulary of whole words (vocabulary_format::word_model), whose pieces begin
  /// with the mark of a space, without that mark. token() returns one; for other vocabularies both are those of pieces.
  int32_t token_id(const std::string& token) const;
  std::string token(int32_t id) const;
  /// Returns the numbers of tokens with spaces between them. Throws ConfigError, beginning with `key`, for a piece that is not there.
  std::vector<int32_t> ids_of(std::string_view pieces, const std::string& key) const;
  /// Returns the text of one piece, for logs and tests.
  std::string piece(int32_t id) const;

  int64_t size() const { return size_; }
  int32_t unk() const { return unk_; }
  int32_t bos() const { return bos_; }  // the decoder's first input; -1: none, as in vocabularies of Marian's models
  int32_t eos() const { return eos_; }
  int32_t pad() const { return pad_; }  // never produced; -1: none, as in every vocabulary that Starling trains

  /// What the tokenizer of an imported model finds in text beside SentencePiece; empty for vocabularies that Starling trains.
  const ListedPieces& listed() const { return *listed_; }
  /// How text becomes pieces by Moses's tokenizer and subword-nmt; null for vocabularies of SentencePiece.
  const moses::WordPieces* word_pieces() const { return word_pieces_.get(); }
  /// Takes the tag of a language, and the spaces around it, from the head of a source, and returns its id: unk() for what only looks like
  /// one, such as >>xyz<<, as OPUS-MT's programs do; -1, with nothing taken, if none is there. Only vocabularies of imported models have
  /// tags that are typed.
  int32_t take_tag(std::string_view& text) const;

  const std::string& bytes() const { return bytes_; }
  uint64_t hash() const { return hash_; }  // of bytes()

 private:
  std::vector<int> cut(std::string_view text) const;
  EncodedLine cut_with_bytes(std::string_view text) const;
  // Calls `token` with the id and the bytes of each added token in the text, and `part` with what stands between them, at most kPartBytes.
  void each_part(std::string_view text, const std::function<void(std::string_view part)>& part,
                 const std::function<void(int32_t id, std::string_view text)>& token) const;
  DecodedLine decoded(std::span<const int32_t> ids) const;
  DecodedLine joined(std::span<const int32_t> ids) const;
  int32_t number_of_token(const std::string& token) const;  // of a piece of word_pieces_; unk_ if there is none
  bool is_unknown(int32_t id) const;
  bool all_known(std::span<const int32_t> ids) const;
  void check_ids(std::span<const int32_t> ids) const;
  Vocabulary(std::unique_ptr<sentencepiece::SentencePieceProcessor> processor, std::string bytes, const std::string& name);

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::string bytes_;
  std::unique_ptr<const ListedPieces> listed_;
  std::unique_ptr<const moses::WordPieces> word_pieces_;
  int64_t size_ = 0;
  bool words_ = false;  // every piece is a whole word
  int32_t unk_ = 0, bos_ = 0, eos_ = 0, pad_ = -1;
  uint64_t hash_ = 0;
};

struct VocabularyOptions {
  std::string type = "unigram";          // or "bpe"
  int64_t size = 8000;                   // pieces; the result has fewer if the text does not yield that many
  std::string normalization = "spaces";  // one of kNormalizations (text/normalization.h)
  int64_t sample_lines = 0;              // distinct lines; 0: as many as memory and time allow
  bool byte_fallback = false;            // characters without a piece become bytes instead of <unk>
  bool split_digits = false;             // every digit is a piece of its own
  std::vector<std::string> whole;        // texts that are always one piece; without commas and white space
  std::vector<std::string> symbols;      // pieces that stand for no text, such as the tags of languages; without commas
  double character_coverage = 0.9999;    // share of characters with a piece of their own; the rest becomes <unk>
  uint64_t seed = 1;                     // of the sample
  int threads = 16;          // fixed instead of the machine's number: unigram training sums floats per thread, so the result depends on it
  int64_t memory_bytes = 0;  // available memory; 0: what the machine, cgroup and ulimit leave
};

struct VocabularyReport {
  int64_t lines = 0;       // read
  int64_t sampled = 0;     // distinct lines used for training
  int64_t size = 0;        // pieces obtained, at most VocabularyOptions::size
  int64_t stands_for = 0;  // lines read that equal one of those
  int64_t sampled_bytes = 0;
};

// Hooks for reporting progress of the training and estimating the time left. All may be empty.
struct VocabularyWatch {
  std::function<void(const std::string& line)> say;
  std::function<double()> fraction;  // share of the lines given so far
  std::function<double()> now;       // seconds; for tests
};

/// Gives the next line, valid until the next call, or returns false at the end.
using LineSource = std::function<bool(std::string_view& line)>;

/// Trains a vocabulary on a seeded sample of the lines and writes it to `path` atomically. Throws ConfigError for options that cannot work
/// (the message names a size that does), DataError if there is no text, and IoError.
VocabularyReport train_vocabulary(const LineSource& lines, const VocabularyOptions& options, const std::string& path,
                                  const VocabularyWatch& watch = {});

}  // namespace starling
