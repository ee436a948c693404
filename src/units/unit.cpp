#include "units/unit.h"

#include <iterator>

#include "base/error.h"

namespace starling {
namespace {

constexpr size_t kGroup = size_t{1} << 18;        // bytes that are translated at once
constexpr size_t kHeldByText = 128;               // bytes that a short text takes besides its own, about
constexpr size_t kFirstBytes = size_t{20} << 10;  // of the first texts

}  // namespace

void UnitFile::check() {
  read();
  take_group(true);
  restart();
}

void UnitFile::translate(const Translate& translate, const Write& write) {
  translate_ = &translate, write_ = &write;
  const auto end = [&] { translate_ = nullptr, write_ = nullptr, held_ = 0, group_.clear(), restart(); };
  try {
    read();
    take_group(true);
  } catch (...) {
    end();
    throw;
  }
  end();
}

size_t UnitFile::add(TextUnit unit) {
  held_ += unit.text.size() + kHeldByText;
  if (checks()) {
    text_bytes_ += unit.text.size();
    if (first_bytes_ < kFirstBytes) {
      first_bytes_ += unit.text.size() + 1;
      first_units_.push_back(unit);
    }
  }
  group_.push_back(std::move(unit));
  return group_.size() - 1;
}

void UnitFile::end_group() {
  if (held_ >= kGroup) take_group(false);
}

void UnitFile::take_group(bool last) {
  if (!checks()) {
    const std::vector<std::string> translations = group_.empty() ? std::vector<std::string>() : (*translate_)(group_);
    CHECK(translations.size() == group_.size(), "{} translations of {} texts", translations.size(), group_.size());
    write_group(translations, last);
  }
  drop_group();
  group_.clear();
  held_ = 0;
}

std::vector<TextUnit> UnitFile::units() {
  std::vector<TextUnit> all;
  const auto unchanged = [&](std::span<const TextUnit> group) {
    std::vector<std::string> texts;
    for (const TextUnit& unit : group) texts.push_back(unit.text);
    all.insert(all.end(), group.begin(), group.end());
    return texts;
  };
  translate(unchanged, [](std::string_view) {});
  return all;
}

std::string UnitFile::assemble(std::span<const std::string> translations) {
  std::string out;
  size_t done = 0;
  const auto given = [&](std::span<const TextUnit> group) {
    CHECK(done + group.size() <= translations.size(), "{} translations of {} texts, and more", translations.size(), done + group.size());
    const auto begin = translations.begin() + static_cast<ptrdiff_t>(done);
    done += group.size();
    return std::vector<std::string>(begin, begin + static_cast<ptrdiff_t>(group.size()));
  };
  translate(given, [&](std::string_view bytes) { out += bytes; });
  CHECK(done == translations.size(), "{} translations of {} texts", translations.size(), done);
  return out;
}

}  // namespace starling
