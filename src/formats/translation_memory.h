// Translation memories: sentences that people have translated, of TMX files (tmx.h), tables or lines with tabs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace starling {

class TranslationMemory {
 public:
  /// Reads a file: TMX, of which TmxReader takes the segments of the two languages; a table, whose name ends with .csv; or lines of a
  /// sentence, a tab and its translation. Of several translations of a sentence the last one counts. Throws IoError, and DataError that
  /// begins with the file's name for a file that is none of these.
  static std::shared_ptr<const TranslationMemory> load(const std::string& path, const std::string& source, const std::string& target);
  static std::shared_ptr<const TranslationMemory> parse(std::string text, const std::string& name, const std::string& source,
                                                        const std::string& target);

  /// Returns the translation of a sentence that is in the memory, white space aside; null if it is not.
  const std::string* find(std::string_view sentence) const;
  size_t size() const { return translations_.size(); }

 private:
  void add(std::string_view source, std::string_view target);
  void read_lines(std::string_view text, const std::string& name);
  void read_tmx(std::string_view text, const std::string& name, const std::string& source, const std::string& target);

  std::unordered_map<std::string, std::string> translations_;
};

}  // namespace starling
