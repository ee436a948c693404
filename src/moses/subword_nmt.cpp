#include "moses/subword_nmt.h"

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "base/quotes.h"
#include "base/utf8.h"

namespace starling::moses {
namespace {

constexpr std::string_view kEnd = "</w>", kGoesOnMark = "@@", kVersion = "#version:";
constexpr uint64_t kCopies = 8;        // of the codes, or of parts of them, while a vocabulary is made
constexpr uint64_t kMergeBytes = 320;  // of a merge and the up to three symbols that are new with it

std::string_view stripped(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of("\r "), line.size());
  return line.substr(begin, line.find_last_not_of("\r ") + 1 - begin);
}

uint64_t both(int32_t left, int32_t right) { return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right); }

}  // namespace

bool SubwordNmt::is_codes(std::string_view text) {
  if (text.starts_with(kVersion)) return true;
  const std::string_view line = stripped(text.substr(0, text.find('\n')));
  return !line.empty() && std::count(line.begin(), line.end(), ' ') == 1 && !invalid_utf8_offset(line);
}

uint64_t SubwordNmt::bytes_of(std::string_view codes) {
  return kMergeBytes * static_cast<uint64_t>(std::count(codes.begin(), codes.end(), '\n') + 1) + kCopies * codes.size();
}

int32_t SubwordNmt::symbol(const std::string& text) { return symbols_.emplace(text, static_cast<int32_t>(symbols_.size())).first->second; }

SubwordNmt::SubwordNmt(std::string_view codes, const std::string& name) {
  int64_t line_number = 0;
  end_apart_ = true;
  while (!codes.empty() && (codes.ends_with('\n') || codes.ends_with('\r'))) codes.remove_suffix(1);
  for (size_t begin = 0; begin < codes.size();) {
    const size_t end = std::min(codes.find('\n', begin), codes.size());
    const std::string_view line = stripped(codes.substr(begin, end - begin));
    begin = end + 1;
    ++line_number;
    const auto wrong = [&](const std::string& why) { throw DataError(fmt::format("{}:{}: {}", name, line_number, why)); };
    if (line_number == 1 && line.starts_with(kVersion)) {
      std::string_view version = stripped(line.substr(kVersion.size()));
      if (version.ends_with("byte")) wrong("the codes are of bytes, which no model that is imported here has; use codes of characters");
      while (version.ends_with(".0")) version.remove_suffix(2);
      if (version != "0.1" && version != "0.2")
        wrong(fmt::format("the codes have version {}; 0.1 and 0.2 can be read", in_quotes(std::string(version))));
      end_apart_ = version == "0.1";
      continue;
    }
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      wrong(fmt::format("{} is not a pair of pieces with a space between them, as codes of subword-nmt are",
                        in_quotes(std::string(line.substr(0, 100)))));
    const std::string left(line.substr(0, space)), right(line.substr(space + 1));
    const auto rank = static_cast<int32_t>(line_number);
    const int32_t l = symbol(left), r = symbol(right);  // in this order: they number the symbols
    merges_.try_emplace(both(l, r), Merge{rank, symbol(left + right)});
  }
}

bool SubwordNmt::makes(std::string_view piece) const {
  const bool goes_on = piece.ends_with(kGoesOnMark);
  if (goes_on) piece.remove_suffix(kGoesOnMark.size());
  const bool character = !piece.empty() && static_cast<size_t>(decode_utf8_at(piece).length) == piece.size();
  return character || symbols_.contains(std::string(piece) + std::string(goes_on || end_apart_ ? "" : kEnd));
}

const SubwordNmt::Merge* SubwordNmt::merge_of(int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return nullptr;
  const auto found = merges_.find(both(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// The pairs of the best merge are merged from left to right, then the best of all pairs that are there now is looked for. Neighbours are in
// a queue, so that a word of a million letters takes no longer than as many short ones.
std::vector<size_t> SubwordNmt::cut(std::u32string_view word) const {
  struct Piece {
    int32_t symbol;  // -1: in no merge
    size_t characters;
    size_t before, after;
  };
  if (word.size() < 2) return {word.size()};
  std::vector<Piece> pieces;
  const auto add = [&](const std::string& text, size_t characters) {
    const auto found = symbols_.find(text);
    pieces.push_back({found == symbols_.end() ? -1 : found->second, characters, pieces.size() - 1, pieces.size() + 1});
  };
  for (size_t i = 0; i < word.size(); ++i) {
    std::string text;
    append_utf8(text, word[i]);
    add(!end_apart_ && i + 1 == word.size() ? text + std::string(kEnd) : text, 1);
  }
  if (end_apart_) add(std::string(kEnd), 0);

  struct Pair {
    int32_t rank;
    size_t left;
    int32_t left_symbol, right_symbol, result;
    bool operator>(const Pair& o) const { return std::pair(rank, left) > std::pair(o.rank, o.left); }
  };
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> queue;
  const auto offer = [&](size_t left) {
    if (left >= pieces.size() || pieces[left].after >= pieces.size()) return;
    const int32_t l = pieces[left].symbol, r = pieces[pieces[left].after].symbol;
    if (const Merge* m = merge_of(l, r)) queue.push({m->rank, left, l, r, m->result});
  };
  for (size_t i = 0; i + 1 < pieces.size(); ++i) offer(i);
  std::vector<size_t> changed;
  while (!queue.empty()) {
    changed.clear();
    for (const int32_t rank = queue.top().rank; !queue.empty() && queue.top().rank == rank; queue.pop()) {
      const Pair& p = queue.top();
      Piece& left = pieces[p.left];
      if (left.symbol != p.left_symbol || left.after >= pieces.size() || pieces[left.after].symbol != p.right_symbol) continue;
      Piece& right = pieces[left.after];
      left.symbol = p.result;
      left.characters += right.characters;
      left.after = right.after;
      right.symbol = -2;  // gone
      if (left.after < pieces.size()) pieces[left.after].before = p.left;
      changed.push_back(p.left);
    }
    for (const size_t i : changed) {
      if (pieces[i].symbol == -2) continue;
      offer(i);
      offer(pieces[i].before);
    }
  }
  std::vector<size_t> sizes;
  for (size_t i = 0; i < pieces.size(); i = pieces[i].after)
    if (pieces[i].characters > 0) sizes.push_back(pieces[i].characters);
  return sizes;
}

}  // namespace starling::moses
