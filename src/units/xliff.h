// XLIFF 1.2 and 2: what has no translation gets one, with its inline elements, and a state that tells translators where it is from.
#pragma once

#include "units/xml_elements.h"

namespace starling {

class Xliff final : public XmlFile {
 public:
  /// Throws DataError with the line for a broken file, and for one between other languages.
  Xliff(std::string text, const Languages& languages);

 private:
  void read() override;
  void set_target_language(size_t element, const char* name);
  void add_unit_1(bool preserve);
  void add_segments_2(bool preserve);
  void fill_segments(size_t from, size_t target, bool preserve);
  // Adds the target of an element, with the text of `from`; `target` is what it has.
  void add_target(size_t element, size_t from, std::optional<size_t> target, std::string_view attributes, bool preserve);
  UnitText read_inline(size_t element) const;
  void add_inline(UnitText& text, size_t first, size_t end) const;
  std::string name_with_prefix_of(size_t element, std::string_view name) const;

  const Languages languages_;
};

}  // namespace starling
