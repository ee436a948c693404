// Measures against the values that OpusFilter and OpusCleaner give for the same pairs (fixtures/cleaning).
#include "cleaning/measures.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/cleaning/table_rows.h"
#include "text/script.h"

namespace starling {
namespace {

using Row = std::map<std::string, std::string>;  // by the names of columns

// The rows of a table by their ids.
std::map<std::string, Row> table(const std::string& name) {
  const std::vector<std::vector<std::string>> all = table_rows("cleaning/" + name);
  std::map<std::string, Row> rows;
  for (size_t k = 1; k < all.size(); ++k)
    for (size_t i = 0; i < all[k].size(); ++i) rows[all[k][0]][all[0].at(i)] = all[k][i];
  return rows;
}

struct FixturePair {
  explicit FixturePair(std::vector<std::string> row) : fields(std::move(row)), source(fields.at(4)), target(fields.at(5)) {}
  const std::vector<std::string> fields;  // id, source language, target language, kind, source, target
  const JudgedSide source, target;
};

// Calls check(pair) for each pair of the fixture.
void for_each_pair(const std::function<void(const FixturePair&)>& check) {
  int count = 0;
  for (const std::vector<std::string>& row : table_rows("cleaning/pairs.tsv")) {
    if (row[0] == "id") continue;
    check(FixturePair(row));
    ++count;
  }
  EXPECT_EQ(count, 153);
}

std::string_view script_named(const std::string& name) {
  static const std::map<std::string, std::string_view> kCodes = {{"Latin", "Latn"},   {"Cyrillic", "Cyrl"}, {"Greek", "Grek"},
                                                                 {"Arabic", "Arab"},  {"Han", "Hani"},      {"Hangul", "Hang"},
                                                                 {"Hiragana", "Hira"}};
  return kCodes.at(name);
}

TEST(Measures, AreOpusFiltersScores) {
  const auto expected = table("opusfilter.tsv");
  for_each_pair([&](const FixturePair& pair) {
    const Row& row = expected.at(pair.fields[0]);
    const JudgedSide &s = pair.source, &t = pair.target;
    const auto expect = [&](const std::string& column, const std::vector<double>& values) {
      const std::vector<std::string> all = fields_of(row.at(column), ' ');
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_TRUE(values[i] == std::stod(all.at(i)) || std::abs(values[i] - std::stod(all.at(i))) < 1e-8)
            << column << " of pair " << pair.fields[0] << ": " << values[i] << " instead of " << all.at(i);
    };
    const auto words = [](const JudgedSide& side) { return static_cast<double>(side.words.size()); };
    expect("words", {words(s), words(t)});
    expect("characters", {s.length(), t.length()});
    if (words(s) + words(t) > 0) expect("ratio-words", {ratio_of_lengths(words(s), words(t))});
    if (s.length() + t.length() > 0) expect("ratio-characters", {ratio_of_lengths(s.length(), t.length())});
    expect("longest", {longest_word(s), longest_word(t)});
    expect("mean", {mean_word_length(s), mean_word_length(t)});
    expect("letters", {letter_share(s, true), letter_share(t, true)});
    expect("letters-without-spaces", {letter_share(s, false), letter_share(t, false)});
    expect("markup", {has_markup(s) ? 1.0 : 0.0, has_markup(t) ? 1.0 : 0.0});
    expect("marks", {sentence_marks(s, t)});
    expect("digits", {digit_similarity(s, t)});
    if (t.length() < 200) expect("common", {common_run_share(s, t)});  // of longer ones difflib leaves frequent characters out
    expect("similarity", {similarity(s, t)});
    const auto expect_repetitions = [&](const std::string& column, int64_t times, int64_t shortest, int64_t longest) {  // 20 at most
      const int64_t most = std::max(repetitions(s, times, shortest, longest), repetitions(t, times, shortest, longest));
      EXPECT_EQ(most, std::min<int64_t>(std::stoll(row.at(column)), kMostRepetitions)) << column << " of pair " << pair.fields[0];
    };
    expect_repetitions("repetitions", 2, 3, 101);
    expect_repetitions("repetitions-1-2-30", 1, 2, 31);
    const std::vector<std::string> scripts = fields_of(row.at("script"), ' ');
    expect("script",
           {script_share(s, std::vector{script_named(scripts.at(2))}), script_share(t, std::vector{script_named(scripts.at(3))})});
  });
}

TEST(Measures, AreOpusCleanersDecisions) {
  const auto expected = table("opuscleaner.tsv");
  for_each_pair([&](const FixturePair& pair) {
    const Row& row = expected.at(pair.fields[0]);
    EXPECT_EQ(number_agreement(pair.source, pair.target) >= 1, row.at("numbers") == "1") << pair.fields[0];
    EXPECT_EQ(addresses(pair.source) == addresses(pair.target), row.at("addresses") == "1") << pair.fields[0];
  });
}

// Levenshtein's distance by its recursion, where the other takes 64 characters at a time.
TEST(Measures, SimilarityOfLongTexts) {
  std::u32string a, b;
  for (uint32_t i = 0, x = 1; i < 300; ++i, x = x * 1103515245 + 12345) {
    a += U'a' + (x >> 16) % 5;
    if (i % 7 != 3) b += i % 11 == 5 ? U'z' : a.back();
  }
  for (const size_t size : {1u, 63u, 64u, 65u, 128u, 200u, 257u}) {
    const std::u32string of_b = b.substr(0, size);
    std::vector<size_t> row(of_b.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 0; i < a.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i + 1);
      for (size_t j = 0; j < of_b.size(); ++j)
        diagonal = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, diagonal + (a[i] != of_b[j])}));
    }
    const std::string utf8 = encode_utf8(of_b), whole = encode_utf8(a);
    EXPECT_NEAR(similarity(JudgedSide(utf8), JudgedSide(whole)), 1 - static_cast<double>(row.back()) / static_cast<double>(a.size()), 1e-12)
        << size;
  }
}

TEST(Measures, ScriptsOfLettersAndLanguages) {
  using Scripts = std::vector<std::string_view>;
  EXPECT_EQ(scripts_of_language("de"), Scripts{"Latn"});
  EXPECT_EQ(scripts_of_language("ru"), Scripts{"Cyrl"});
  EXPECT_EQ(scripts_of_language("sr"), (Scripts{"Cyrl", "Latn"}));
  EXPECT_EQ(scripts_of_language("sr-Latn"), Scripts{"Latn"});
  EXPECT_EQ(scripts_of_language("sr-Cyrl"), Scripts{"Cyrl"});
  EXPECT_EQ(scripts_of_language("ja"), (Scripts{"Hira", "Kana", "Hani"}));
  EXPECT_EQ(scripts_of_language("zh-TW"), Scripts{"Hani"});
  EXPECT_EQ(scripts_of_language("ko"), (Scripts{"Hang", "Hani"}));
  EXPECT_EQ(scripts_of_language(""), Scripts{});
  EXPECT_EQ(letter_script(U'ß'), "Latn");
  EXPECT_EQ(letter_script(U'Ω'), "Grek");
  EXPECT_EQ(letter_script(U'я'), "Cyrl");
  EXPECT_EQ(letter_script(U'ิ'), "Thai");
  EXPECT_EQ(letter_script(U'7'), "");
  EXPECT_EQ(letter_script(U'½'), "");
}

}  // namespace
}  // namespace starling
