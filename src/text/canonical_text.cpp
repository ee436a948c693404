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
        out_.text += text_[at];
        out_.source.push_back(static_cast<int64_t>(at));
      } else if (is_default_ignorable(c) && !is_known(c)) {
        changed_ = true;
      } else {
        if (begins_composition(c)) end_group();
        group_ += text_.substr(at, end - at);
        places_.insert(places_.end(), end - at, static_cast<int64_t>(at));
        may_change_ = may_change_ || c >= 0x300;
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
    if (may_change_) {
      std::string whole = composed(group_);
      if (whole != group_ && !knows_(group_)) {
        group_ = std::move(whole);
        places_.assign(group_.size(), places_.front());
        changed_ = true;
      }
    }
    out_.text += group_;
    out_.source.insert(out_.source.end(), places_.begin(), places_.end());
    group_.clear();
    places_.clear();
    may_change_ = false;
  }

  std::string_view text_;
  const std::function<bool(std::string_view)>& knows_;
  std::map<char32_t, bool> known_;  // default-ignorable characters
  std::string group_;
  std::vector<int64_t> places_;  // where in the text the character of each byte of the group begins
  bool may_change_ = false;      // characters below U+0300 are composed already
  CanonicalText out_;
  bool changed_ = false;
};

}  // namespace

std::optional<CanonicalText> canonical_text(std::string_view text, const std::function<bool(std::string_view)>& knows) {
  return Writer(text, knows).write();
}

}  // namespace starling
