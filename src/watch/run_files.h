// Reads the files of a run for people who watch it. A file that is missing or cannot be read has nothing.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace starling {

struct FileMark {
  uint64_t size = 0, inode = 0;
  int64_t changed_ns = 0;
  std::string text() const;
};
std::optional<FileMark> file_mark(const std::string& path);

// Returns bytes of a file from an offset to its end, at most `most`.
std::string bytes_from(const std::string& path, uint64_t offset, uint64_t most);
// Returns the last lines of a file.
std::vector<std::string> last_lines(const std::string& path, size_t count);
// Returns the keys of a configuration with their values as text, "train.max-steps"; lists have numbers, "data.train.0.source".
std::map<std::string, std::string> flat_configuration(const std::string& path);

// Returns {"source", "reference", "by_step": [{"step", "lines"}]} of the kept translations below a run: the same sentences, evenly spread
// over the text, of the newest validations. Source and reference are left out where their files cannot be read from here.
nlohmann::json kept_sentences(const std::string& run_directory, const std::map<std::string, std::string>& configuration);
// Returns what changes when another translation is kept.
std::string kept_sentences_mark(const std::string& run_directory);

}  // namespace starling
