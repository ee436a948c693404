#include "text/listed_pieces.h"

#include <algorithm>

namespace starling {
namespace {

constexpr size_t kLongestTag = 64;  // bytes; what is longer is text

}  // namespace

using vocabulary_format::Found;

ListedPieces::ListedPieces(std::string_view model) {
  std::vector<vocabulary_format::Piece> pieces = vocabulary_format::pieces(model);
  pieces.resize(std::min(pieces.size(), static_cast<size_t>(vocabulary_format::numbered(model))));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const vocabulary_format::Piece& piece = pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (vocabulary_format::is_row_without_piece(piece.text)) without_piece_.push_back(id);
    if (piece.found == Found::usual || piece.text.empty()) continue;
    found_.resize(pieces.size());
    found_[i] = piece.found;
    ids_.emplace(texts_.emplace(id, piece.text).first->second, id);
    any_whole_ |= piece.found == Found::whole;
    if (piece.found == Found::tag) {
      tags_.emplace(piece.text, id);
      any_typed_ |= vocabulary_format::has_form_of_tag(piece.text);
      longest_tag_ = std::max(longest_tag_, piece.text.size());
    }
    if (piece.found == Found::added || piece.found == Found::added_symbol) {
      added_[static_cast<unsigned char>(piece.text[0])].emplace_back(piece.text, id);
      any_added_ = true;
    }
  }
  for (auto& tokens : added_)
    std::stable_sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

int32_t ListedPieces::whole(std::string_view text) const {
  const int32_t id = id_of(text);
  return found(id) == Found::whole ? id : -1;
}

const std::string* ListedPieces::text(int32_t id) const {
  const auto piece = texts_.find(id);
  return piece == texts_.end() ? nullptr : &piece->second;
}

int32_t ListedPieces::id_of(std::string_view text) const {
  const auto piece = ids_.find(text);
  return piece == ids_.end() ? -1 : piece->second;
}

Found ListedPieces::found(int32_t id) const {
  return static_cast<size_t>(id) < found_.size() ? found_[static_cast<size_t>(id)] : Found::usual;
}

std::vector<ListedPieces::Part> ListedPieces::parts(std::string_view text) const {
  std::vector<Part> parts;
  size_t begin = 0;
  const auto text_until = [&](size_t end) {
    if (end > begin) parts.push_back({text.substr(begin, end - begin), -1});
  };
  for (size_t at = any_added_ ? 0 : text.size(); at < text.size(); ++at)
    for (const auto& [token, id] : added_[static_cast<unsigned char>(text[at])]) {
      if (!text.substr(at).starts_with(token)) continue;
      text_until(at);
      begin = at + token.size();
      parts.push_back({text.substr(at, token.size()), id});
      at = begin - 1;
      break;
    }
  text_until(text.size());
  return parts;
}

int32_t ListedPieces::take_tag(std::string_view& text) const {
  const auto without_space = [](std::string_view t) { return t.substr(std::min(t.find_first_not_of(' '), t.size())); };
  const std::string_view all = tags_.empty() ? std::string_view() : without_space(text);
  for (size_t size = std::min(longest_tag_, all.size()); size > 0; --size) {
    const auto tag = tags_.find(all.substr(0, size));
    const bool ends = size == all.size() || all[size] == ' ' || vocabulary_format::has_form_of_tag(all.substr(0, size));
    if (tag == tags_.end() || !ends) continue;
    text = without_space(all.substr(size));
    return tag->second;
  }
  return -1;
}

std::string_view ListedPieces::unknown_tag(std::string_view text) const {
  if (!any_typed_) return "";
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const size_t end = text.substr(0, kLongestTag).find("<<");
  if (end == std::string_view::npos) return "";
  const std::string_view tag = text.substr(0, end + 2);
  return vocabulary_format::has_form_of_tag(tag) && !tags_.contains(tag) ? tag : "";
}

std::vector<int32_t> ListedPieces::prefix_with(std::span<const int32_t> prefix, int32_t typed) const {
  std::vector<int32_t> whole(prefix.begin(), prefix.end());
  if (typed < 0) return whole;
  const auto own = is_tag(typed) ? std::find_if(whole.begin(), whole.end(), [&](int32_t id) { return is_tag(id); }) : whole.end();
  if (own == whole.end())
    whole.push_back(typed);
  else
    *own = typed;
  return whole;
}

}  // namespace starling
