// Subtitles (SubRip and WebVTT). Sentences reach over lines and cues, so the texts of cues that belong together are translated as one, and
// the translation is cut again: among the cues by their lengths, within a cue into lines. Counters, times, settings, notes and styles stay.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"
#include "formats/unit_file.h"

namespace starling {

/// Returns whether a text begins as SubRip or WebVTT does.
bool is_subtitles(std::string_view text);

class Subtitles final : public UnitFile {
 public:
  /// Takes linear time. What is not a cue is kept as it is. Units have no line breaks.
  explicit Subtitles(std::string text);

 private:
  // The text of a cue, or of one line of it where people take turns.
  struct Part {
    Range place;              // bytes of text_ that it replaces
    std::string front, back;  // tags around all of it
    std::string text;         // in one line
    int64_t characters = 0;
  };
  // Parts whose texts are translated as one.
  using Group = std::vector<Part>;
  void read() override;
  void write_group(std::span<const std::string> translations, bool last) override;
  void drop_group() override;
  void restart() override;
  size_t add_cue(size_t begin, bool joins);
  void add_part(size_t begin, size_t end, bool joins);
  void add_texts(size_t groups);

  std::string text_;
  bool webvtt_;                // where text has entities, and tags for the times of words
  std::vector<Group> groups_;  // that are not written yet
  size_t parts_ = 0;           // that were added to them
  size_t given_ = 0;           // groups whose texts are to be translated
  size_t done_ = 0;            // bytes of the file that are written
};

}  // namespace starling
