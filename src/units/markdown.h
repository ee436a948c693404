// Markdown (CommonMark with GitHub's extensions): paragraphs, headings, items, cells of tables and blocks of HTML are translated, with
// emphasis, links and code moved with their words; everything else stays.
#pragma once

#include "units/markdown_scan.h"
#include "units/unit_text.h"

namespace starling {

class Markdown final : public EditedFile {
 public:
  /// Takes linear time. Throws DataError for what is not UTF-8; all else is Markdown.
  explicit Markdown(std::string text);

 private:
  class Leaf;
  void read() override;
  void add_html(const MarkdownLeaf& leaf);
};

}  // namespace starling
