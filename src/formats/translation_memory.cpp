#include "formats/translation_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text_files.h"
#include "base/utf8.h"
#include "formats/csv.h"
#include "formats/tmx.h"
#include "text/unicode.h"

namespace starling {
namespace {

TmxReader::Read parts_of(std::string_view text) {
  return [text](char* data, size_t capacity) mutable {
    const size_t count = text.copy(data, capacity);
    text.remove_prefix(count);
    return count;
  };
}

}  // namespace

std::shared_ptr<const TranslationMemory> TranslationMemory::load(const std::string& path, const std::string& source,
                                                                 const std::string& target) {
  return parse(read_text_file(path), path, source, target);
}

std::shared_ptr<const TranslationMemory> TranslationMemory::parse(std::string text, const std::string& name, const std::string& source,
                                                                  const std::string& target) {
  auto memory = std::make_shared<TranslationMemory>();
  const std::string_view bytes = text, head = bytes.substr(0, 1000);
  const bool wide = head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF");  // UTF-16, in which CAT tools write TMX
  if (const auto bad = wide ? std::nullopt : invalid_utf8_offset(bytes))
    throw DataError(fmt::format("{}:{}: not UTF-8; convert the memory, for instance with iconv", name,
                                1 + std::count(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(*bad), '\n')));
  if (wide || head.find("<tmx") != bytes.npos) {
    memory->read_tmx(bytes, name, source, target);
  } else if (name.ends_with(".csv")) {
    const std::string table = lines_of_csv(bytes, csv_separator(bytes));
    const std::string_view lines = table, first = lines.substr(0, lines.find('\n'));
    memory->read_lines(lines.substr(names_csv_columns(first, source, target) ? first.size() + 1 : 0), name);
  } else {
    memory->read_lines(bytes.substr(byte_order_mark(bytes)), name);
  }
  if (memory->size() == 0) throw DataError(fmt::format("{}: the memory has no sentences; name a file that has some", name));
  return memory;
}

const std::string* TranslationMemory::find(std::string_view sentence) const {
  const auto found = translations_.find(with_single_spaces(sentence));
  return found == translations_.end() ? nullptr : &found->second;
}

void TranslationMemory::add(std::string_view source, std::string_view target) {
  std::string key = with_single_spaces(source), value = with_single_spaces(target);
  if (!key.empty() && !value.empty()) translations_.insert_or_assign(std::move(key), std::move(value));
}

void TranslationMemory::read_lines(std::string_view text, const std::string& name) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos && with_single_spaces(line).empty()) continue;
    if (tab == std::string_view::npos)
      throw DataError(fmt::format(
          "{}:{}: no tab; a memory is a TMX file, a table (.csv), or lines of a sentence, a tab and its translation", name, number));
    add(line.substr(0, tab), line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1));
  }
}

void TranslationMemory::read_tmx(std::string_view text, const std::string& name, const std::string& source, const std::string& target) {
  try {
    TmxReader reader(parts_of(text), source, target);
    for (std::string from, to; reader.next(from, to);) add(from, to);
    reader.require_pairs();
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", name, e.what()));
  }
}

}  // namespace starling
