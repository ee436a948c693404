#include "alignment/lexicon.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "config/words.h"
#include "data/line_reader.h"
#include "data/zstd_writer.h"

namespace starling {
namespace {

constexpr std::string_view kMagic = "starling-lexicon-2", kForward = "forward", kReverse = "reverse", kTension = "tension";
constexpr std::array<std::string_view, 2> kJumps{"jump", "start"};  // as in JumpCounts
constexpr std::array<int64_t, 2> kFirstWidths{-kWidestJump, 1};     // a sentence begins at position 1 or later

void write_direction(ZstdWriter& file, std::string_view name, AlignmentModel model, const Aligner& aligner,
                     const std::vector<std::string_view>& sources, const std::vector<std::string_view>& targets) {
  if (model == AlignmentModel::diagonal) file.write(fmt::format("{}\t{}\t{}\n", kTension, name, aligner.tension()));
  for (size_t kind = 0; model == AlignmentModel::hmm && kind < kJumps.size(); ++kind)
    for (int64_t width = kFirstWidths[kind]; width <= kWidestJump; ++width)
      file.write(fmt::format("{}\t{}\t{}\t{}\n", kJumps[kind], name, width, aligner.jumps().weights[kind][jump_place(width)]));
  const WordPairs& pairs = aligner.table().pairs();
  for (uint32_t s = 0; s < pairs.sources(); ++s)
    for (size_t place = pairs.begin(s); place < pairs.end(s); ++place)
      if (const auto p = static_cast<float>(aligner.table().at_place(place)); p >= TranslationTable::kLeastKept)
        file.write(fmt::format("{}\t{}\t{}\t{}\n", name, sources[s], targets[pairs.target(place)], p));
}

template <class T>
bool read_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= -1e6 && value <= 1e6;
}

// The lines of one direction.
struct ReadDirection {
  bool any = false;
  std::optional<double> tension;
  JumpDistribution jumps;
  std::array<std::array<bool, std::tuple_size_v<JumpWidths>>, 2> read{};  // which weights
  std::vector<std::pair<uint64_t, float>> entries;

  // Takes a line of jumps; returns what is wrong with it, or null.
  const char* take_jump(size_t kind, std::string_view width_text, std::string_view weight_text) {
    int64_t width = 0;
    double weight = 0;
    if (!read_number(width_text, width) || width < kFirstWidths[kind] || width > kWidestJump) return "has a width that no jump has";
    if (!read_number(weight_text, weight) || weight <= 0 || weight > 1) return "has a weight that is no number above 0 and up to 1";
    if (std::exchange(read[kind][jump_place(width)], true)) return "says a width again";
    jumps.weights[kind][jump_place(width)] = weight;
    return nullptr;
  }
  // Returns what the lines lack, or null.
  const char* lacks(AlignmentModel model) const {
    if (!any) return nullptr;
    if (model == AlignmentModel::diagonal && !tension) return "is the last line, but a tension is missing";
    for (size_t kind = 0; model == AlignmentModel::hmm && kind < kJumps.size(); ++kind)
      for (int64_t width = kFirstWidths[kind]; width <= kWidestJump; ++width)
        if (!read[kind][jump_place(width)]) return "is the last line, but the weight of a jump is missing";
    return nullptr;
  }
  std::optional<Aligner> aligner(const AlignerOptions& options) {
    if (!any) return std::nullopt;
    std::sort(entries.begin(), entries.end());
    std::vector<uint64_t> pairs;
    std::vector<float> probabilities;
    for (const auto& [pair, probability] : entries) {
      if (!pairs.empty() && pairs.back() == pair) continue;  // a line that comes twice
      pairs.push_back(pair);
      probabilities.push_back(probability);
    }
    return Aligner(TranslationTable(WordPairs(pairs), std::move(probabilities)), tension.value_or(0), jumps, options);
  }
};

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  for (size_t at = 0, tab; at <= line.size(); at = tab + 1) {
    tab = std::min(line.find('\t', at), line.size());
    columns.push_back(line.substr(at, tab - at));
  }
  return columns;
}

template <class E>
bool is_word(std::string_view text) {
  constexpr auto kWords = words(E{});
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

}  // namespace

void write_lexicon(const Lexicon& lexicon, FileSystem& files, const std::string& path) {
  ZstdWriter file(files, path);
  file.write(fmt::format("{}\t{}\t{}\n", kMagic, lexicon.parts, lexicon.model));
  const std::vector<std::string_view> source = lexicon.source.parts(), target = lexicon.target.parts();
  if (lexicon.forward) write_direction(file, kForward, lexicon.model, *lexicon.forward, source, target);
  if (lexicon.reverse) write_direction(file, kReverse, lexicon.model, *lexicon.reverse, target, source);
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
  if (head.size() != 3 || head[0] != kMagic || !is_word<AlignedParts>(head[1]) || !is_word<AlignmentModel>(head[2])) fail("is no lexicon");
  lexicon.parts = from_word<AlignedParts>(head[1]);
  options.model = lexicon.model = from_word<AlignmentModel>(head[2]);
  while (reader.next(line)) {
    const std::vector<std::string_view> columns = columns_of(line);
    const bool is_tension = columns[0] == kTension;
    const auto kind = static_cast<size_t>(std::find(kJumps.begin(), kJumps.end(), columns[0]) - kJumps.begin());
    const bool is_jump = kind < kJumps.size();
    if (columns.size() != (is_tension ? 3u : 4u)) fail("has another number of columns");
    const std::string_view direction = columns[is_tension || is_jump ? 1 : 0];
    if (direction != kForward && direction != kReverse) fail("names another direction than forward and reverse");
    ReadDirection& to = direction == kForward ? forward : reverse;
    to.any = true;
    if (is_jump) {
      if (const char* wrong = to.take_jump(kind, columns[2], columns[3])) fail(wrong);
      continue;
    }
    if (is_tension) {
      if (!read_number(columns[2], to.tension.emplace()) || *to.tension < 0) fail("has a tension that is no number from 0");
      continue;
    }
    float probability = 0;
    if (!read_number(columns[3], probability) || probability < 0 || probability > 1)
      fail("has a probability that is no number from 0 to 1");
    if (columns[2].empty()) fail("has no target");
    PartNumbers &sources = direction == kForward ? lexicon.source : lexicon.target,
                &targets = direction == kForward ? lexicon.target : lexicon.source;
    const uint64_t source = columns[1].empty() ? kNullWord : sources.add(std::string(columns[1]));
    to.entries.emplace_back(source << 32 | targets.add(std::string(columns[2])), probability);
  }
  for (const ReadDirection* direction : {&forward, &reverse})
    if (const char* what = direction->lacks(lexicon.model)) fail(what);
  lexicon.forward = forward.aligner(options);
  lexicon.reverse = reverse.aligner(options);
  return lexicon;
}

}  // namespace starling
