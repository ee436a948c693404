#include "alignment/lexicon.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "config/words.h"
#include "data/line_reader.h"
#include "data/zstd_writer.h"

namespace starling {
namespace {

constexpr std::string_view kMagic = "starling-lexicon-1", kForward = "forward", kReverse = "reverse", kTension = "tension";
constexpr float kLeastWritten = 1e-6f;

void write_direction(ZstdWriter& file, std::string_view name, const Aligner& aligner, const std::vector<std::string_view>& sources,
                     const std::vector<std::string_view>& targets) {
  file.write(fmt::format("{}\t{}\t{}\n", kTension, name, aligner.tension()));
  const WordPairs& pairs = aligner.pairs();
  for (uint32_t s = 0; s < pairs.sources(); ++s)
    for (size_t place = pairs.begin(s); place < pairs.end(s); ++place)
      if (const float p = aligner.probability(place); p >= kLeastWritten)
        file.write(fmt::format("{}\t{}\t{}\t{}\n", name, sources[s], targets[pairs.target(place)], p));
}

// The lines of one direction.
struct ReadDirection {
  std::optional<double> tension;
  std::vector<std::pair<uint64_t, float>> entries;
  std::optional<Aligner> aligner(const AlignerOptions& options) {
    if (!tension) return std::nullopt;
    std::sort(entries.begin(), entries.end());
    std::vector<uint64_t> pairs;
    std::vector<float> probabilities;
    for (const auto& [pair, probability] : entries) {
      if (!pairs.empty() && pairs.back() == pair) continue;  // a line that comes twice
      pairs.push_back(pair);
      probabilities.push_back(probability);
    }
    return Aligner(WordPairs(pairs), std::move(probabilities), *tension, options);
  }
};

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1e6;
}

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (size_t at = 0, tab; at <= line.size(); at = tab + 1) {
    tab = std::min(line.find('\t', at), line.size());
    columns.push_back(line.substr(at, tab - at));
  }
  return columns;
}

}  // namespace

void write_lexicon(const Lexicon& lexicon, bool diagonal, FileSystem& files, const std::string& path) {
  ZstdWriter file(files, path);
  file.write(fmt::format("{}\t{}\t{}\n", kMagic, word(lexicon.parts), diagonal ? 1 : 0));
  const std::vector<std::string_view> source = lexicon.source.parts(), target = lexicon.target.parts();
  if (lexicon.forward) write_direction(file, kForward, *lexicon.forward, source, target);
  if (lexicon.reverse) write_direction(file, kReverse, *lexicon.reverse, target, source);
  file.close();
}

Lexicon read_lexicon(const std::string& path, AlignerOptions options) {
  LineReader reader(path);
  Lexicon lexicon;
  ReadDirection forward, reverse;
  std::string_view line;
  const auto fail = [&](const char* what) {
    throw DataError(fmt::format("{}:{}: {}; name a file that 'starling align --save' wrote", path, reader.line_number(), what));
  };
  const bool any = reader.next(line);
  const std::vector<std::string_view> head = columns_of(any ? line : std::string_view());
  constexpr auto kParts = words(AlignedParts{});
  if (head.size() != 3 || head[0] != kMagic || std::find(kParts.begin(), kParts.end(), head[1]) == kParts.end() ||
      (head[2] != "0" && head[2] != "1"))
    fail("is no lexicon");
  lexicon.parts = from_word<AlignedParts>(std::string(head[1]));
  options.diagonal = head[2] == "1";
  while (reader.next(line)) {
    const std::vector<std::string_view> columns = columns_of(line);
    const bool is_tension = columns[0] == kTension;
    if (columns.size() != (is_tension ? 3u : 4u)) fail("has another number of columns");
    const std::string_view direction = columns[is_tension ? 1 : 0];
    if (direction != kForward && direction != kReverse) fail("names another direction than forward and reverse");
    ReadDirection& to = direction == kForward ? forward : reverse;
    if (is_tension) {
      if (!read_number(columns[2], to.tension.emplace())) fail("has a tension that is no number");
      continue;
    }
    float probability = 0;
    if (!read_number(columns[3], probability) || probability > 1) fail("has a probability that is no number from 0 to 1");
    if (columns[2].empty()) fail("has no target");
    PartNumbers &sources = direction == kForward ? lexicon.source : lexicon.target,
                &targets = direction == kForward ? lexicon.target : lexicon.source;
    const uint64_t source = columns[1].empty() ? kNullWord : sources.add(std::string(columns[1]));
    to.entries.emplace_back(source << 32 | targets.add(std::string(columns[2])), probability);
  }
  lexicon.forward = forward.aligner(options);
  lexicon.reverse = reverse.aligner(options);
  return lexicon;
}

}  // namespace starling
