#include "watch/kept_sentences.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "watch/record_values.h"

namespace starling {
namespace {

constexpr size_t kShown = 5;       // sentences, where the run does not say which
constexpr size_t kMostShown = 64;  // where it does
constexpr size_t kNewest = 8;      // validations whose translations are shown
constexpr size_t kLongest = 2000;  // bytes of a sentence that are shown
constexpr uint64_t kMostText = 16 << 20;
constexpr const char* kList = "validations/sentences.json";

// Returns the first bytes of lines of a text, by their numbers; a text may have millions of lines, of which few are wanted.
std::map<size_t, std::string> wanted_lines(std::string_view text, const std::set<size_t>& numbers) {
  std::map<size_t, std::string> lines;
  size_t at = 0, number = 0;
  for (const size_t wanted : numbers) {
    for (; number < wanted && at < text.size(); ++number) at = std::min(text.find('\n', at), text.size()) + 1;
    if (at >= text.size()) break;
    lines[wanted] = text.substr(at, std::min(text.find('\n', at) - at, kLongest));
  }
  return lines;
}

// Whether the next change will have another time: those of file systems have ticks.
bool is_settled(const FileMark& mark) {
  constexpr int64_t kTick = 2'000'000'000;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - mark.changed_ns > kTick;
}

}  // namespace

// Which sentences: those that the run names, or some that are evenly spread over the newest text.
void KeptSentences::read_sentences(const std::string& run, Look& look) {
  const auto list = RunFile::open(run, kList);
  const auto newest = list || names_.empty() ? std::nullopt : RunFile::open(run, names_.rbegin()->second);
  const std::string mark = list ? list->mark().text() : newest ? "newest" : "";
  if (mark == sentences_mark_) return;
  sentences_mark_ = mark;
  sentences_.clear();
  lines_.clear();
  if (newest && newest->mark().size <= kMostText) {
    const std::string text = newest->read(0, kMostText, look);
    const bool is_cut = !text.empty() && text.back() != '\n';
    const size_t all = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + (is_cut ? 1 : 0), shown = std::min(kShown, all);
    for (size_t i = 0; i < shown; ++i) sentences_.push_back({i * all / shown, "", "", ""});
  }
  if (!list) return;
  try {
    const auto json = parse_json_object(list->read(0, 1 << 20, look), kList);
    for (const auto& each : json.value("sentences", nlohmann::json::array())) {
      const auto line = each.is_object() ? step_of(each, "line") : std::nullopt;
      if (!line || sentences_.size() == kMostShown) continue;
      sentences_.push_back({static_cast<size_t>(*line), text_of(each, "text", kLongest), text_of(each, "source", kLongest),
                            text_of(each, "reference", kLongest)});
    }
  } catch (const std::exception&) {  // none of ours
  }
}

bool KeptSentences::refresh(const std::string& run, Look& look) {
  const auto mark = kept_mark(run);
  const std::string text = mark ? mark->text() : "";
  if (text == mark_ && !more_) return false;
  names_ = kept_translations(run, kNewest);
  read_sentences(run, look);
  std::erase_if(lines_, [&](const auto& each) { return !names_.contains(each.first); });
  more_ = false;
  for (const auto& [step, name] : names_) {
    if (look.over()) {
      more_ = true;
      break;
    }
    const auto file = RunFile::open(run, name);
    if (!file || file->mark().size > kMostText) continue;
    auto& [read, lines] = lines_[step];
    if (read == file->mark().text()) continue;
    read = file->mark().text();
    std::set<size_t> numbers;
    for (const Sentence& s : sentences_) numbers.insert(s.line);
    std::map<size_t, std::string> translations = wanted_lines(file->read(0, kMostText, look), numbers);
    lines.clear();
    for (const Sentence& s : sentences_) lines.push_back(translations[s.line]);
  }
  mark_ = !mark || is_settled(*mark) ? text : "unsettled";
  nlohmann::json by_step = nlohmann::json::array(), now = nlohmann::json::object();
  for (const auto& [step, of] : lines_) by_step.push_back({{"step", step}, {"lines", of.second}});
  if (!by_step.empty() && !sentences_.empty()) now["by_step"] = std::move(by_step);
  if (!now.empty() && sentences_mark_ != "newest")
    for (const Sentence& s : sentences_) {
      now["source"].push_back(s.source);
      now["reference"].push_back(s.reference);
      now["text"].push_back(s.text);
    }
  std::swap(now, json_);
  return now != json_;
}

}  // namespace starling
