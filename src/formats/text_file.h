// A file that is one text: plain, HTML or XML. It is translated in pieces between which no sentence continues.
#pragma once

#include "units/unit.h"

namespace starling {

class TextFile final : public UnitFile {
 public:
  /// Throws DataError with the line for what is not UTF-8; all else is text.
  TextFile(std::string text, DocumentFormat format);

 private:
  void read() override;
  void write_group(std::span<const std::string> translations, bool) override;
  void drop_group() override {}
  void restart() override {}
  void add_piece(std::string_view piece);

  const std::string text_;
  const DocumentFormat format_;
};

}  // namespace starling
