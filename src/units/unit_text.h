// A text of a file with what stands within it and is not text: elements of XLIFF, emphasis of Markdown, tags that a string has in quotes.
// The translator gets it as XML with elements of our own; in its translation they become again the bytes that they stand for.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "units/unit.h"

namespace starling {

/// Bytes of a file, and the unit whose translation follows them.
struct Fragment {
  std::string bytes;
  size_t unit = SIZE_MAX;  // none
};
using Fragments = std::vector<Fragment>;

class UnitText {
 public:
  /// Appends text as the file writes it; `out` has, from `begin`, what of this unit is written already.
  struct Place {
    size_t begin = 0;
    bool ends = true;  // nothing of the unit follows
  };
  using Encode = std::function<void(std::string& out, Place place, std::string_view text)>;

  void add_text(std::string_view text);
  /// Adds text whose tags, as HTML has them within sentences, are tags; what else looks like one is text.
  void add_with_tags(std::string_view text, const Encode& encode);
  /// Adds a piece of HTML. `entities`: with its entities, which become characters; else text has none.
  void add_html(std::string_view html, const Encode& encode, bool entities = true);
  /// Adds what moves with its neighbours.
  void add_single(Fragments fragments) { add_empty("x", std::move(fragments)); }
  void add_single(std::string bytes) { add_empty("x", {{std::move(bytes)}}); }
  /// Adds what ends a sentence.
  void add_separator(std::string bytes) { add_empty("s", {{std::move(bytes)}}); }
  /// Adds what stays as it is, though the translator sees `shown` in its place.
  void add_kept(std::string bytes, std::string_view shown);
  /// Opens a pair, whose number close() gets. One that nothing is left in is not written, unless `stays`.
  size_t open(std::string bytes, bool stays = true);
  void close(size_t pair, std::string bytes);

  /// Returns whether there is something to translate.
  bool has_words() const;
  /// Returns the units that fragments name.
  std::vector<size_t> nested() const;
  bool has_nested() const { return !nested().empty(); }
  TextUnit unit(SentenceEnds ends) const;
  /// Appends the unit's translation as the file has it; `nested` appends that of another unit, which a fragment names.
  void append(std::string& out, std::string_view translation, const Encode& encode,
              const std::function<void(std::string& out, size_t unit)>& nested) const;

 private:
  void add_empty(const char* name, Fragments fragments);

  std::string xml_, words_;
  std::vector<Fragments> parts_;   // by the numbers of the elements
  std::vector<size_t> vanishing_;  // numbers of pairs that are not written without content
  bool html_ = false;              // entities of HTML are written
};

/// A file in which some places are replaced and everything else stays byte for byte.
class EditedFile : public UnitFile {
 protected:
  /// `in_place`: translations stand where their texts stood, and a text that is its own translation keeps its bytes.
  EditedFile(std::string bytes, bool in_place) : text_(std::move(bytes)), in_place_(in_place) {}

  /// Adds a unit and returns its number, which holds until the next end_group().
  size_t add_unit(UnitText text, SentenceEnds ends, UnitText::Encode encode);
  /// Replaces bytes of the file, behind those of the groups before. Places do not overlap; of several at the same byte the first comes
  /// first.
  void replace(size_t begin, size_t end, Fragments fragments) { replace_value(begin, end, std::move(fragments), nullptr); }
  /// The same for a value, whose new text `write` appends as the file has it, with its quotes and escapes.
  using WriteValue = std::function<void(std::string& out, const std::string& value)>;
  void replace_value(size_t begin, size_t end, Fragments fragments, WriteValue write);
  void insert(size_t at, std::string bytes) { replace(at, at, {{std::move(bytes)}}); }
  /// Throws DataError that begins with the line of a byte.
  [[noreturn]] void refuse(size_t at, const std::string& why) const;
  void require_utf8() const;

  std::string text_;

 private:
  struct Edit {
    size_t begin, end;
    Fragments fragments;
    WriteValue write;
  };
  void write_group(std::span<const std::string> translations, bool last) override;
  void drop_group() override;
  void restart() override;
  bool is_unchanged(const Edit& edit, std::span<const std::string> translations) const;
  void append_unit(std::string& out, size_t unit, std::span<const std::string> translations) const;

  std::vector<UnitText> texts_;  // of the units of a group
  std::vector<UnitText::Encode> encodes_;
  std::vector<Edit> edits_;
  size_t done_ = 0;  // bytes of the file that are written
  const bool in_place_;
};

}  // namespace starling
