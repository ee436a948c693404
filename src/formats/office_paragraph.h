// A paragraph of an office document as a text with short tags, and made again from the text's translation. Runs of the commonest format are
// plain text, others stand in <g>; links and other containers become <c>, what stands in its place <x/>, line breaks and tabs <br/>, fields
// <k>. Each tag has a number.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace starling {

class OfficeParagraph {
 public:
  // How the text of a run is written: between `head` and `tail`, in an element of its own unless `element` is empty.
  struct Format {
    std::string key;  // equal for runs that look the same
    std::string head, tail, element;
    bool keeps_spaces = false;  // the element needs an attribute for spaces at its ends
  };

  size_t format(const Format& format);
  // `xml`: characters of XML, with entities.
  void add_text(std::string_view xml, size_t format);
  // Adds bytes that are not text.
  void add_single(std::string_view bytes, bool breaks = false);
  // Adds bytes that the model sees as a text, which stays.
  void add_kept(std::string_view bytes, std::string_view xml);
  // Opens a container and returns its number for close(); a container that is never closed is a single.
  size_t open(std::string_view bytes);
  void close(size_t opened, std::string_view bytes);
  // Adds bytes to the container that was opened last; returns false if anything stands behind its beginning.
  bool extend_open(std::string_view bytes);

  // How many texts, tags and the like it has.
  size_t parts() const { return items_.size(); }
  // Returns whether there is a text with letters.
  bool has_words() const;
  // Returns the characters of its text.
  std::string characters() const;
  // Returns the text to translate. Call it once, at the end.
  std::string tagged();
  // Returns what stands between the tags of the paragraph. A translation in which tags are missing or wrongly nested gets them at its end;
  // so does one whose runs would repeat more bytes of properties than `spare`, which the repeated ones are taken from.
  std::string rewritten(const std::string& translation, size_t& spare) const;

 private:
  enum class Kind : char { text, single, breaks, kept, open, close };
  struct Item {
    Kind kind;
    std::string bytes;
    size_t format = 0;          // of a text
    size_t partner = SIZE_MAX;  // of a container
    std::string text = {};      // of what is kept
  };
  void trim();
  bool append_translated(std::string& out, std::string_view translation, size_t& spare) const;
  void append_text(std::string& out, std::string_view xml, const Format& format) const;

  std::vector<Format> formats_;
  std::map<std::string, size_t> numbers_;  // of the formats, by their keys
  std::vector<size_t> lengths_;            // bytes of text in each format
  std::vector<Item> items_;
  std::vector<size_t> groups_;   // the format of each <g>; their numbers follow those of the items
  size_t first_ = 0, last_ = 0;  // the items from the first text to the last; those around them keep their places
  size_t base_ = 0;              // the format that has no tag
};

}  // namespace starling
