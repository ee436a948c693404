// A file that holds many texts, each of which is a document by itself: subtitles, catalogues of messages, office documents. It may be as
// large as memory, so that texts and their translations are never all there at once: it is read, and written, in groups of them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "document/document.h"
#include "text/languages.h"

namespace starling {

struct TextUnit {
  std::string text;
  DocumentFormat format = DocumentFormat::text;
  DocumentOptions options;
};

class UnitFile {
 public:
  /// Returns the translations of texts, one for each.
  using Translate = std::function<std::vector<std::string>(std::span<const TextUnit> units)>;
  /// Takes the next bytes of the translated file.
  using Write = std::function<void(std::string_view bytes)>;

  virtual ~UnitFile() = default;
  /// Bytes of all texts together.
  size_t text_bytes() const { return text_bytes_; }
  /// The first texts, from which the language can be detected.
  std::span<const TextUnit> first_units() const { return first_units_; }
  /// Writes the file with its texts replaced by their translations, which it asks for in groups and in order; everything else stays byte
  /// for byte.
  void translate(const Translate& translate, const Write& write);

  /// The same for tests and small files: all texts, and the file with the translations of all of them.
  std::vector<TextUnit> units();
  std::string assemble(std::span<const std::string> translations);

 protected:
  /// Reads the file from its beginning: adds its texts, and calls end_group() where what it has added is complete.
  virtual void read() = 0;
  /// Writes the file up to the end of the group, or all that is left if it is the `last`; there is a translation for each of its texts.
  virtual void write_group(std::span<const std::string> translations, bool last) = 0;
  /// Forgets what was read of the group.
  virtual void drop_group() = 0;
  /// Forgets all that was read, and written.
  virtual void restart() = 0;

  /// Reads the file for the first time, to find out what is wrong with it. Constructors end with it.
  void check();
  /// Adds a text and returns its number within the group.
  size_t add(TextUnit unit);
  /// Counts bytes that a group holds besides its texts.
  void count_held(size_t bytes) { held_ += bytes; }
  /// Says that all that follows lies behind what was added so far, which is translated and written if it is enough.
  void end_group();
  bool checks() const { return translate_ == nullptr; }
  const std::vector<TextUnit>& group() const { return group_; }
  void write(std::string_view bytes) const { (*write_)(bytes); }

 private:
  void take_group(bool last);

  std::vector<TextUnit> group_, first_units_;
  size_t held_ = 0, first_bytes_ = 0, text_bytes_ = 0;
  const Translate* translate_ = nullptr;  // null while the file is checked
  const Write* write_ = nullptr;
};

}  // namespace starling
