// The pieces of an imported model that its tokenizer finds in text beside those that SentencePiece finds (vocabulary_format::Found).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocabulary_format.h"

namespace starling {

class ListedPieces {
 public:
  /// Takes the pieces of a model's valid bytes.
  explicit ListedPieces(std::string_view model);
  ListedPieces(const ListedPieces&) = delete;
  ListedPieces& operator=(const ListedPieces&) = delete;

  bool any_whole() const { return any_whole_; }
  /// Returns the id of the piece that is this text as a whole; -1 if there is none.
  int32_t whole(std::string_view text) const;

  struct Part {
    std::string_view text;
    int32_t id;  // -1: text for SentencePiece
  };
  /// Cuts added tokens out of a text: from left to right, the longest at each place.
  std::vector<Part> parts(std::string_view text) const;

  vocabulary_format::Found found(int32_t id) const;
  /// Returns the text of a piece that found() is not usual of, which SentencePiece may have under another name; null for others.
  const std::string* text(int32_t id) const;
  /// Returns the id of such a piece; -1 if there is none.
  int32_t id_of(std::string_view text) const;
  /// Returns whether decode() must write this piece without SentencePiece.
  bool written(int32_t id) const { return found(id) == vocabulary_format::Found::whole || found(id) == vocabulary_format::Found::added; }

  /// Takes the tag of a language from the head of a text, with the spaces around it, and returns its id; -1, with nothing taken, if no tag
  /// stands there.
  int32_t take_tag(std::string_view& text) const;
  /// Returns what looks like a tag of OPUS-MT's, such as >>fra<<, at the head of a text and is not among these; "" if none does.
  std::string_view unknown_tag(std::string_view text) const;
  bool is_tag(int32_t id) const { return found(id) == vocabulary_format::Found::tag; }
  /// Returns what stands in front of a source: the prefix, in which a typed tag takes the place of its own, or follows with what is typed
  /// and not a tag of the model's; typed: -1 if nothing is.
  std::vector<int32_t> prefix_with(std::span<const int32_t> prefix, int32_t typed) const;
  /// Tags by their text.
  const std::map<std::string, int32_t, std::less<>>& tags() const { return tags_; }
  /// Ids of the rows that have no piece, ascending.
  const std::vector<int32_t>& without_piece() const { return without_piece_; }

 private:
  std::vector<vocabulary_format::Found> found_;  // by id; empty if all are usual
  std::map<std::string, int32_t, std::less<>> tags_;
  std::array<std::vector<std::pair<std::string, int32_t>>, 256> added_;  // by first byte, longest first
  std::unordered_map<int32_t, std::string> texts_;
  std::unordered_map<std::string_view, int32_t> ids_;  // of texts_
  std::vector<int32_t> without_piece_;
  size_t longest_tag_ = 0;
  bool any_whole_ = false, any_added_ = false, any_typed_ = false;  // typed: in OPUS-MT's form
};

}  // namespace starling
