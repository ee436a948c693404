// How a vocabulary of whole tokens comes to them from plain text: by the tokenizer of Moses and subword-nmt, whose pieces of a word end
// with @@ but for the last. Settings, codes and abbreviations lie in the vocabulary's bytes (field 7306 of the model).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moses/moses.h"
#include "moses/subword_nmt.h"

namespace starling::moses {

struct Settings {
  Options text;
  std::string codes;  // of subword-nmt, as its file has them; "": words stay whole
};
/// The settings as a message of a model, and back; nullopt if a model has none.
std::string message_of(const Settings& settings);
std::optional<Settings> settings_of(std::string_view model);

struct Piece {
  std::string text;
  Range bytes;  // of the line
};
struct JoinedText {
  std::string text;
  std::vector<Range> bytes;  // of each piece
};

class WordPieces {
 public:
  /// Throws DataError, beginning with `name`, for codes that cannot be read.
  WordPieces(Settings settings, const std::string& name);
  const Settings& settings() const { return settings_; }

  /// Cuts a line into pieces; their bytes ascend and do not overlap.
  std::vector<Piece> pieces(std::string_view line) const;
  /// Joins pieces to a text; empty ones are left out.
  JoinedText join(std::span<const std::string> pieces) const;

 private:
  Settings settings_;
  Tokenizer tokenizer_;
  Detokenizer detokenizer_;
  std::optional<SubwordNmt> codes_;
};

}  // namespace starling::moses
