#include "translate/synthesis.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "base/counted.h"
#include "base/quotes.h"
#include "config/config.h"
#include "data/corpus.h"
#include "data/zstd_writer.h"
#include "storage/shared_parts.h"
#include "translate/line_translation.h"
#include "translate/models.h"

namespace starling {
namespace {

constexpr const char *kText = "text.tsv.zst", *kScores = "scores.zst", *kPartText = "tsv.zst", *kPartScores = "scores.zst";
constexpr double kShortestWait = 0.1, kLongestWait = 2;  // s, for other processes

struct PartCounts {
  int64_t lines = 0, pairs = 0, blank = 0, too_long = 0, unfinished = 0, tokens = 0;
  static constexpr int64_t PartCounts::*kAll[] = {&PartCounts::lines,    &PartCounts::pairs,      &PartCounts::blank,
                                                  &PartCounts::too_long, &PartCounts::unfinished, &PartCounts::tokens};
  std::string text() const {
    std::string all;
    for (const auto count : kAll) all += fmt::format("{} ", this->*count);
    return all;
  }
  void add(const std::string& note) {
    std::istringstream in(note);
    for (const auto count : kAll) {
      int64_t number = 0;
      in >> number;
      this->*count += number;
    }
  }
};

void check_synthesis(const TranslateOptions& o) {
  check(o);
  for (const std::string& input : o.inputs)
    if (is_pipe(input))
      throw ConfigError(
          fmt::format("{} is a pipe, but each process reads the text to find its parts; store it in a file", printable(input)));
}

// The lines of several files, one after the other.
class InputLines {
 public:
  explicit InputLines(const std::vector<std::string>& paths) : paths_(paths) {}
  bool next(std::string_view& line) {
    for (;; reader_.reset()) {
      if (!reader_) {
        if (at_ == paths_.size()) return false;
        reader_.emplace(paths_[at_++]);
      }
      if (reader_->next(line)) return true;
    }
  }
  // Returns the next lines, blank ones included.
  std::vector<std::string> take(int64_t lines) {
    std::vector<std::string> taken;
    std::string_view line;
    while (std::ssize(taken) < lines && next(line)) taken.emplace_back(line);
    return taken;
  }
  void skip(int64_t lines) {
    std::string_view line;
    for (int64_t i = 0; i < lines && next(line);) ++i;
  }

 private:
  const std::vector<std::string>& paths_;
  size_t at_ = 0;
  std::optional<LineReader> reader_;
};

// Everything that the pairs depend on.
std::string job_text(FileSystem& files, const SynthesisOptions& o, const TranslationModels& models, int64_t lines) {
  const TranslateOptions& t = o.translate;
  std::string text = fmt::format("starling synthesize 1\n{}\n{} lines in parts of {}\nat most {} source tokens, {} translations\n",
                                 o.forward ? "forward" : "backward", lines, o.part_lines, t.max_source_tokens, t.n_best);
  if (t.sampling) text += fmt::format("seed {}, top {}, temperature {}\n", t.drawing.key, t.drawing.top_k, t.drawing.temperature);
  for (const double weight : t.weights) text += fmt::format("weight {}\n", weight);
  for (const std::string& input : t.inputs) text += facts_of_file(input) + "\n";
  SearchOptions search = models.search();
  text += write_config(config_sections("search", "", search));
  for (const NamedPath& model : models.directories()) text += files.read_file(join_path(model.path, "manifest.json"));
  return text;
}

class Synthesis {
 public:
  Synthesis(FileSystem& files, const SynthesisOptions& o, const TranslateSurroundings& s)
      : files_(files),
        o_(o),
        s_(s),
        shards_(1, s.join),
        models_(files, o.translate, shards_, [&](const std::string& line) { say(line); }),
        progress_(std::in_place, "synthesize", o.translate.quiet ? TaskScreen() : s.screen),
        lines_(count_lines()),
        parts_(std::max<int64_t>(1, (lines_ + o.part_lines - 1) / o.part_lines)),
        shared_(files, o.translate.output, job_text(files, o, models_, lines_)),
        translator_(models_.translator(o.translate, 1)) {
    translator_.set_watch({.stop = {}, .translated = [this](double share) {
                             if (progress_->due()) show(std::llround(share * static_cast<double>(under_way_)));
                           }});
  }

  void run() {
    double wait = kShortestWait;
    while (!shared_.complete()) {
      const int64_t made_before = made_.lines;
      take_parts();
      if (all_done()) put_together();
      if (shared_.complete()) break;
      if (made_.lines > made_before) wait = kShortestWait;
      progress_->tell(-1, "waiting for the parts of other processes");
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
      wait = std::min(2 * wait, kLongestWait);
    }
    progress_.reset();
    report();
  }

 private:
  void say(const std::string& line) const {
    if (!o_.translate.quiet) s_.tell(line + "\n");
  }

  // Reads all of the text, so that what is wrong with it is known before hours are spent on it.
  int64_t count_lines() {
    InputLines input(o_.translate.inputs);
    int64_t lines = 0;
    for (std::string_view line; input.next(line); ++lines)
      if (progress_->due()) progress_->tell(-1, fmt::format("{} lines read", lines));
    return lines;
  }

  int64_t lines_of(int64_t part) const { return std::min(o_.part_lines, lines_ - part * o_.part_lines); }
  bool all_done() const {
    for (int64_t part = 0; part < parts_; ++part)
      if (!shared_.done(part)) return shared_.complete();
    return true;
  }

  // Makes all parts that nobody has made or makes.
  void take_parts() {
    InputLines input(o_.translate.inputs);
    int64_t skipped = 0;  // not yet in the input
    done_ = 0;
    for (int64_t part = 0; part < parts_; ++part) {
      const auto mine = shared_.begin(part);
      if (mine) {
        input.skip(std::exchange(skipped, 0));
        make(part, input.take(lines_of(part)));
      } else {
        skipped += lines_of(part);
      }
      done_ += lines_of(part);
    }
  }

  void make(int64_t part, std::vector<std::string> lines) {
    if (made_.lines == 0) progress_->estimate_from(static_cast<double>(done_) / static_cast<double>(std::max<int64_t>(lines_, 1)));
    PartCounts counts{.lines = std::ssize(lines)};
    const Vocabulary& vocabulary = models_.first().description.vocabularies.source();
    std::vector<std::string> texts(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      std::replace(lines[i].begin(), lines[i].end(), '\t', ' ');
      if (lines[i].find_first_not_of(' ') == std::string::npos)
        ++counts.blank;
      else if (std::ssize(vocabulary.encode(lines[i])) > translator_.most_text_tokens())
        ++counts.too_long;
      else
        texts[i] = lines[i];
    }
    under_way_ = std::ssize(lines);
    translator_.set_lines_before(part * o_.part_lines);
    const auto translations = translate_texts(translator_, texts, {}, o_.translate.all_lines);
    ZstdWriter pairs(files_, shared_.path(part, kPartText)), scores(files_, shared_.path(part, kPartScores));
    for (size_t i = 0; i < lines.size(); ++i)
      for (const Translation& t : translations[i]) {
        const bool stays = t.tokens == 0;  // a line that is no text
        if (t.text.empty()) continue;
        if (!stays && t.hypothesis.end < 0) {
          ++counts.unfinished;
          continue;
        }
        pairs.write(o_.forward ? lines[i] + "\t" + t.text + "\n" : t.text + "\t" + lines[i] + "\n");
        scores.write(fmt::format("{:.6g}\n", stays ? 0. : t.log_probability / static_cast<double>(t.tokens)));
        counts.tokens += t.tokens;
        ++counts.pairs;
      }
    pairs.close();
    scores.close();
    shared_.finish(part, counts.text());
    made_.add(counts.text());
    under_way_ = 0;
    show(counts.lines);
  }

  void show(int64_t of_this_part) {
    if (progress_->due()) progress_->count(done_ + of_this_part, lines_, "lines");
  }

  void put_together() {
    const auto mine = shared_.begin_whole();
    if (!mine) return;
    PartCounts all;
    for (int64_t part = 0; part < parts_; ++part) all.add(shared_.note(part));
    shared_.join(parts_, kPartText, kText);
    shared_.join(parts_, kPartScores, kScores);
    const nlohmann::ordered_json counts{{"lines", all.lines},       {"pairs", all.pairs},           {"blank", all.blank},
                                        {"too_long", all.too_long}, {"unfinished", all.unfinished}, {"translated_tokens", all.tokens}};
    files_.write_file(shared_.path("synthesis.json"), counts.dump(2) + "\n");
    shared_.publish();
  }

  void report() {
    const std::string& directory = shared_.directory();
    const auto counts = nlohmann::json::parse(files_.read_file(join_path(directory, "synthesis.json")));
    s_.on_stop(fmt::format("{} is complete", printable(directory)));
    const auto count = [&](const char* name) { return counts.at(name).get<int64_t>(); };
    say(fmt::format("{}: {} of {}; left out: {}, {} above --max-source-tokens, {} without an end", join_path(printable(directory), kText),
                    counted(count("pairs"), "pair"), counted(count("lines"), "line"), counted(count("blank"), "blank line"),
                    counted(count("too_long"), "line"), counted(count("unfinished"), "translation")));
    if (made_.lines == 0) return say("all of it was there already");
    const double seconds = steady_seconds() - start_;
    say(fmt::format("this process translated {} in {:.0f} s: {:.1f} lines/s, {:.0f} tokens/s", counted(made_.lines, "line"), seconds,
                    static_cast<double>(made_.lines) / seconds, static_cast<double>(made_.tokens) / seconds));
  }

  FileSystem& files_;
  const SynthesisOptions& o_;
  const TranslateSurroundings& s_;
  const double start_ = steady_seconds();
  ShardRanks shards_;
  const TranslationModels models_;
  std::optional<TaskProgress> progress_;
  const int64_t lines_, parts_;
  SharedParts shared_;
  Translator translator_;
  PartCounts made_;        // by this process
  int64_t done_ = 0;       // lines of the parts before this one
  int64_t under_way_ = 0;  // lines of this part
};

}  // namespace

void synthesize(FileSystem& files, const SynthesisOptions& o, const TranslateSurroundings& s) {
  check_synthesis(o.translate);
  const NamedPath output{"--output", o.translate.output};
  std::vector<NamedPath> inputs;
  for (const std::string& input : o.translate.inputs) inputs.push_back({"--input", input});
  refuse_own_input(output, inputs);
  refuse_run_files(output);
  s.on_stop(fmt::format("stopped: {} is not there yet; the same command goes on", printable(o.translate.output)));
  Synthesis(files, o, s).run();
}

}  // namespace starling
