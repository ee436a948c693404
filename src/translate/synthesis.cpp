#include "translate/synthesis.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/quotes.h"
#include "base/utf8.h"
#include "config/config.h"
#include "data/corpus.h"
#include "data/zstd_writer.h"
#include "storage/shared_parts.h"
#include "translate/line_translation.h"
#include "translate/models.h"
#include "translate/synthesis_parts.h"

namespace starling {
namespace {

constexpr const char *kText = "text.tsv.zst", *kScores = "scores.zst", *kPartText = "tsv.zst", *kPartScores = "scores.zst";
constexpr double kShortestWait = 0.1, kLongestWait = 2;  // s, for other processes

void check_synthesis(const TranslateOptions& o) {
  check(o);
  for (const std::string& input : o.inputs)
    if (is_pipe(input))
      throw ConfigError(
          fmt::format("{} is a pipe, but each process reads the text to find its parts; store it in a file", printable(input)));
}

std::string facts_of_files(const std::vector<std::string>& paths) {
  std::string facts;
  for (const std::string& path : paths) facts += facts_of_file(path) + "\n";
  return facts;
}

// What tells these models from others.
std::string facts_of_models(FileSystem& files, const TranslationModels& models) {
  std::string facts = "precision " + models.first().precision + "\n";
  for (const NamedPath& model : models.directories()) {
    const std::string manifest = join_path(model.path, "manifest.json");
    if (files.exists(manifest))
      facts += files.read_file(manifest);
    else
      for (const std::string& name : files.list(model.path)) facts += facts_of_file(join_path(model.path, name));
  }
  return facts;
}

// The options that the pairs depend on.
std::string facts_of_options(const SynthesisOptions& o, const TranslationModels& models) {
  const TranslateOptions& t = o.translate;
  std::string text = fmt::format("{}, parts of {} lines\nat most {} source tokens, {} translations\n", o.forward ? "forward" : "backward",
                                 o.part_lines, t.max_source_tokens, t.n_best);
  if (t.sampling) text += fmt::format("seed {}, top {}, temperature {}\n", t.drawing.key, t.drawing.top_k, t.drawing.temperature);
  for (const double weight : t.weights) text += fmt::format("weight {}\n", weight);
  SearchOptions search = models.search();
  return text + write_config(config_sections("search", "", search));
}

// A translation must not break the table, whatever bytes its pieces stand for.
std::string in_one_cell(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  return std::string(trimmed(text));
}

class Synthesis {
 public:
  Synthesis(FileSystem& files, const SynthesisOptions& o, const TranslateSurroundings& s)
      : files_(files),
        o_(o),
        s_(s),
        shards_(1, s.join),
        input_facts_(facts_of_files(o.translate.inputs)),
        models_(files, o.translate, shards_, [&](const std::string& line) { say(line); }),
        facts_("starling synthesize 1\n" + input_facts_ + facts_of_options(o, models_) + facts_of_models(files, models_)),
        progress_(std::in_place, "synthesize", o.translate.quiet ? TaskScreen() : s.screen),
        lines_(count_lines()),
        parts_(std::max<int64_t>(1, (lines_ + o.part_lines - 1) / o.part_lines)),
        shared_(files, o.translate.output, fmt::format("{}{} lines\n", facts_, lines_)),
        done_(static_cast<size_t>(parts_)),
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
      if (progress_->due()) progress_->tell(-1, "waiting for the parts of other processes");
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
  // What was done once stays done, so the disk is not asked again.
  bool is_done(int64_t part) { return done_[static_cast<size_t>(part)] = done_[static_cast<size_t>(part)] || shared_.done(part); }
  bool all_done() {
    for (int64_t part = 0; part < parts_; ++part)
      if (!is_done(part)) return false;
    return true;
  }

  // Makes all parts that nobody has made or makes.
  void take_parts() {
    InputLines input(o_.translate.inputs);
    int64_t skipped = 0;  // not yet in the input
    before_ = 0;
    for (int64_t part = 0; part < parts_ && !shared_.complete(); ++part) {
      const auto mine = is_done(part) ? nullptr : shared_.begin(part);
      if (mine) {
        input.skip(std::exchange(skipped, 0));
        make(part, input.take(lines_of(part)));
      } else {
        skipped += lines_of(part);
      }
      before_ += lines_of(part);
    }
  }

  // The lines to translate; those that are left out are empty.
  std::vector<std::string> texts_of(std::vector<std::string>& lines, PartCounts& counts) const {
    std::vector<std::string> texts(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      lines[i] = in_one_cell(std::move(lines[i]));
      if (is_unicode_blank(lines[i]))
        ++counts.blank;
      else if (!models_.have_room(lines[i], translator_.most_source_tokens()))
        ++counts.too_long;
      else
        texts[i] = lines[i];
    }
    return texts;
  }

  void make(int64_t part, std::vector<std::string> lines) {
    if (made_.lines == 0) progress_->estimate_from(static_cast<double>(before_) / static_cast<double>(std::max<int64_t>(lines_, 1)));
    const double start = steady_seconds();
    PartCounts counts;
    counts.lines = std::ssize(lines);
    under_way_ = counts.lines;
    std::vector<std::string> texts = texts_of(lines, counts);
    translator_.set_lines_before(part * o_.part_lines);
    const auto translations = translate_texts(translator_, texts, {}, o_.translate.all_lines);
    {
      ZstdWriter pairs(files_, shared_.unfinished(part, kPartText)), scores(files_, shared_.unfinished(part, kPartScores));
      for (size_t i = 0; i < lines.size(); ++i)
        for (const Translation& t : translations[i]) {
          const bool stays = t.tokens == 0;       // what is no text
          if (stays && t.text.empty()) continue;  // it is left out
          const std::string text = in_one_cell(t.text);
          if (!stays && t.hypothesis.end < 0) {
            ++counts.unfinished;
          } else if (is_unicode_blank(text)) {
            ++counts.empty;
          } else {
            pairs.write(o_.forward ? lines[i] + "\t" + text + "\n" : text + "\t" + lines[i] + "\n");
            scores.write(stays ? "nan\n" : fmt::format("{:.6g}\n", t.log_probability / static_cast<double>(t.tokens)));
            counts.tokens += t.tokens;
            ++counts.pairs;
          }
        }
      pairs.close();
      scores.close();
    }
    if (counts.lines != lines_of(part) || facts_of_files(o_.translate.inputs) != input_facts_)
      throw DataError(fmt::format("{}: has changed since the work began; remove {} and begin anew", printable(o_.translate.inputs.front()),
                                  printable(shared_.path(""))));
    shared_.finish(part, {kPartText, kPartScores}, counts.text());
    if (made_.lines == 0) s_.tell(translator_.tag_warning());
    made_.add(counts.text());
    under_way_ = 0;
    busy_ += steady_seconds() - start;
    show(counts.lines);
  }

  void show(int64_t of_this_part) {
    if (!progress_->due()) return;
    const int64_t done = before_ + of_this_part;
    std::string detail = fmt::format("line {} of {}", done, lines_);
    if (busy_ > 0) detail += fmt::format(", {:.0f} a second by this process", static_cast<double>(made_.lines) / busy_);
    progress_->tell(static_cast<double>(done) / static_cast<double>(std::max<int64_t>(lines_, 1)), detail);
  }

  void put_together() {
    const auto mine = shared_.begin_whole();
    if (!mine) return;
    PartCounts all;
    for (int64_t part = 0; part < parts_; ++part) all.add(shared_.note(part));
    shared_.join(parts_, kPartText, kText);
    shared_.join(parts_, kPartScores, kScores);
    const nlohmann::ordered_json counts{{"lines", all.lines},
                                        {"pairs", all.pairs},
                                        {"blank_lines", all.blank},
                                        {"too_long_lines", all.too_long},
                                        {"unfinished_translations", all.unfinished},
                                        {"empty_translations", all.empty},
                                        {"tokens", all.tokens}};
    files_.write_file(shared_.path("synthesis.json"), counts.dump(2) + "\n");
    shared_.publish();
  }

  void report() {
    const std::string& directory = shared_.directory();
    const auto counts = nlohmann::json::parse(files_.read_file(join_path(directory, "synthesis.json")));
    s_.on_stop(fmt::format("{} is complete", printable(directory)));
    const auto count = [&](const char* name) { return counts.at(name).get<int64_t>(); };
    say(fmt::format("{}: {} of {}; left out: {}, {} of more than {} tokens, {} at the length limit, {} empty",
                    join_path(printable(directory), kText), counted(count("pairs"), "pair"), counted(count("lines"), "line"),
                    counted(count("blank_lines"), "blank line"), count("too_long_lines"), translator_.most_text_tokens(),
                    counted(count("unfinished_translations"), "translation"), count("empty_translations")));
    if (made_.lines == 0) return say("this process translated nothing: others, or an earlier start, have done it all");
    say(fmt::format("this process translated {} in {:.0f} s: {:.1f} lines/s, {:.0f} tokens/s", counted(made_.lines, "line"), busy_,
                    static_cast<double>(made_.lines) / busy_, static_cast<double>(made_.tokens) / busy_));
  }

  FileSystem& files_;
  const SynthesisOptions& o_;
  const TranslateSurroundings& s_;
  ShardRanks shards_;
  const std::string input_facts_;
  const TranslationModels models_;
  const std::string facts_;
  std::optional<TaskProgress> progress_;
  const int64_t lines_, parts_;
  SharedParts shared_;
  std::vector<bool> done_;  // parts
  Translator translator_;
  PartCounts made_;        // by this process
  double busy_ = 0;        // s, with them
  int64_t before_ = 0;     // lines of the parts before this one
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
