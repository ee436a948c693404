// Messages in XML: Android's string resources, .NET's .resx, Qt Linguist's .ts.
#pragma once

#include "units/messages.h"
#include "units/xml_elements.h"

namespace starling {

/// Android's strings.xml: strings, plurals and arrays, with the escapes and the tags in them.
class AndroidStrings final : public XmlFile {
 public:
  AndroidStrings(std::string text, const Languages& languages);

 private:
  void read() override;
  size_t add_string(size_t element);
  void add_plurals();
  void add_text(UnitText& unit, std::string_view text, bool cdata) const;
};

/// .resx: the values that are texts.
class Resx final : public XmlFile {
 public:
  Resx(std::string text, const Languages& languages);

 private:
  void read() override;
};

/// .ts: unfinished messages without a translation get one and stay unfinished.
class QtLinguist final : public XmlFile {
 public:
  QtLinguist(std::string text, const Languages& languages);

 private:
  void read() override;
  void add_message(size_t forms);

  const Languages languages_;
};

}  // namespace starling
