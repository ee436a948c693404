#include "text/canonical_text.h"

#include <algorithm>
#include <map>

#include "text/composition.h"
#include "text/unicode.h"

namespace starling {

namespace {

class Writer {
 public:
  Writer(std::string_view text, const std::function<bool(std::string_view)>& knows) : text_(text), knows_(knows) {}

  std::optional<CanonicalText> write() {
    for (size_t at = 0; at < text_.size();) {
      const auto [c, length] = decode_utf8_at(text_.substr(at));
      const size_t end = at + static_cast<size_t>(std::max(length, 1));
      if (length == 0) {
        end_group();
        append(text_.substr(at, 1), at);
      } else if (is_default_ignorable(c) && !is_known(c)) {
        changed_ = true;
      } else {
        if (begins_composition(c)) end_group();
        if (group_.empty()) group_begin_ = at;
        group_.push_back(c);
        places_.push_back(at);
      }
      at = end;
    }
    end_group();
    if (!changed_) return std::nullopt;
    out_.source.push_back(static_cast<int64_t>(text_.size()));
    out_.source.front() = 0;  // characters removed at the beginning belong to what follows
    return std::move(out_);
  }

 private:
  bool is_known(char32_t c) {
    const auto [at, is_new] = known_.try_emplace(c, false);
    if (is_new) at->second = knows_(encode_utf8(std::u32string_view(&c, 1)));
    return at->second;
  }

  // Writes a group of characters that can only be normalised together.
  void end_group() {
    if (group_.empty()) return;
    if (group_.size() > 1 || group_.front() >= 0x300) {  // below U+0300, a single character is composed already
      const std::u32string whole = composed(group_);
      if (whole != group_ && !knows_(encode_utf8(group_))) {
        append(encode_utf8(whole), group_begin_);
        changed_ = true;
        return clear_group();
      }
    }
    for (size_t i = 0; i < group_.size(); ++i) append(encode_utf8(group_.substr(i, 1)), places_[i]);
    clear_group();
  }
  void clear_group() {
    group_.clear();
    places_.clear();
  }
  void append(std::string_view bytes, size_t source) {
    out_.text += bytes;
    out_.source.insert(out_.source.end(), bytes.size(), static_cast<int64_t>(source));
  }

  std::string_view text_;
  const std::function<bool(std::string_view)>& knows_;
  std::map<char32_t, bool> known_;  // default-ignorable characters
  std::u32string group_;
  std::vector<size_t> places_;  // of the group's characters in the text
  size_t group_begin_ = 0;
  CanonicalText out_;
  bool changed_ = false;
};

}  // namespace

std::optional<CanonicalText> canonical_text(std::string_view text, const std::function<bool(std::string_view)>& knows) {
  return Writer(text, knows).write();
}

}  // namespace starling
