// The verb `starling score`: prints log-probabilities of given translations and, on request, of each of their pieces. It prints one line
// per sentence, so that output and input can be pasted together. See docs/reference/formats.md.
#include <cmath>
#include <functional>
#include <optional>

#include "base/counted.h"
#include "base/messages.h"
#include "base/stop_note.h"
#include "base/task_progress.h"
#include "cli/verbs.h"
#include "config/words.h"
#include "decode/alignment.h"
#include "evaluation/n_best_list.h"
#include "evaluation/pair_scores.h"
#include "interop/usable_model.h"
#include "storage/result_file.h"
#include "text/language_match.h"

namespace starling {
namespace {

struct ScoreArguments {
  std::string model, reverse, source, target, tsv, n_best, feature = "Score", target_language, output = "-";
  DeviceChoice compute{.precision = "f32"};
  int64_t batch_tokens = 4000, max_length = 2000;
  bool per_token = false, tokens = false, pieces = false;
  std::optional<AlignmentUnit> alignment;
};

// Finite weights can still be too large to compute with.
void require_numbers(const std::vector<std::vector<float>>& scores, const std::string& path, const std::vector<int64_t>& lines) {
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isfinite(score_of(scores[i])))
      throw DataError(fmt::format(
          "{}:{}: the model gives this pair the log-probability {}: its weights are too large to compute with; use another checkpoint",
          path, lines[i], score_of(scores[i])));
}

// A source and a target with their places in the input; of an n-best list, the entry.
struct ScoredPair {
  std::string source, target;
  NBestEntry entry;
  bool too_long = false;
};

// Pairs of lines that were too long to be scored.
struct TooLong {
  int64_t count = 0, first = 0;  // number of the first line
  void add(int64_t line) {
    if (count++ == 0) first = line;
  }
  std::string warning(const std::string& path, int64_t longest) const {
    if (count == 0) return "";
    return fmt::format(
        "warning: {}: {} with more than {} tokens on a side, the first in line {}, got nan in place of a score; split such sentences, or "
        "raise --max-length as far as the model has positions\n",
        path, counted(count, "pair"), longest, first);
  }
};

// Pairs of lines, or the entries of n-best lists with the lines of the source that they translate.
class PairInput {
 public:
  PairInput(const ScoreArguments& a, const Languages& languages) : path_(!a.n_best.empty() ? a.n_best : a.tsv.empty() ? a.source : a.tsv) {
    if (a.n_best.empty()) {
      corpus_ = {a.source, a.target, a.tsv, 1};
      corpus_.source_language = languages.source;
      corpus_.target_language = a.target_language.empty() ? languages.target : a.target_language;
      pairs_.emplace(corpus_);
      pairs_->take_damaged_lines();
      return;
    }
    list_.emplace(a.n_best);
    LineReader source(a.source);
    for (std::string_view line; source.next(line);) sources_.emplace_back(line);
  }
  bool next(ScoredPair& pair) {
    std::string_view source, target;
    if (pairs_) {
      if (!pairs_->next(source, target)) return false;
      pair.source = source, pair.target = target;
      return true;
    }
    if (!list_->next(source)) return false;
    try {
      pair.entry = parse_n_best(source);
    } catch (const DataError& e) {
      throw DataError(fmt::format("{}:{}: {}", path_, line_number(), e.what()));
    }
    if (pair.entry.sentence >= std::ssize(sources_))
      throw DataError(fmt::format("{}:{}: sentence {}, but the source has {} lines (the first is 0)", path_, line_number(),
                                  pair.entry.sentence, sources_.size()));
    pair.source = sources_[static_cast<size_t>(pair.entry.sentence)], pair.target = pair.entry.text;
    return true;
  }
  const std::string& path() const { return path_; }
  int64_t line_number() const { return pairs_ ? pairs_->line_number() : list_->line_number(); }
  double bytes_read() const { return static_cast<double>(pairs_ ? pairs_->bytes_read() : list_->bytes_read()); }
  double bytes() const {
    const uint64_t all = pairs_ ? corpus_bytes({.train = {corpus_}}) : real_file_system()->info(path_).size;
    return static_cast<double>(std::max<uint64_t>(all, 1));
  }

 private:
  std::string path_;
  CorpusFiles corpus_;
  std::optional<PairReader> pairs_;
  std::optional<LineReader> list_;
  std::vector<std::string> sources_;
};

EncodedPair encoded(const ScoreArguments& a, const Vocabularies& v, const ScoredPair& pair, const SearchOptions& framing) {
  return a.pieces ? framed_pair_of_pieces(v, pair.source, pair.target, framing) : framed_pair(v, pair.source, pair.target, framing);
}

// Scores pairs by two models, one for each direction, as Junczys-Dowmunt (2018) does: exp(-(|H - H'| + (H + H') / 2)) with the
// cross-entropies of a token, nats, 1 at best. Both models must know the pair well, and equally well.
class BothDirections {
 public:
  BothDirections(const ScoreArguments& a, LoadedModel reverse) : a_(a), reverse_(std::move(reverse)) {}
  // Returns whether the model of the other direction has positions for a pair.
  bool has_room(const ScoredPair& pair) const {
    const Vocabularies& vocabularies = reverse_.description.vocabularies;
    const EncodedPair encoded =
        framed_pair(vocabularies, pair.target, pair.source, with_prefixes(reverse_.description.search, vocabularies));
    return static_cast<int64_t>(std::max(encoded.source.size(), encoded.target.size())) <=
           std::min(a_.max_length, longest_sentence(reverse_.description.config));
  }
  std::vector<double> scores(std::span<const ScoredPair> lines, std::span<const std::vector<float>> forward, const std::string& path,
                             const std::vector<int64_t>& numbers) const {
    const Vocabularies& vocabularies = reverse_.description.vocabularies;
    const SearchOptions framing = with_prefixes(reverse_.description.search, vocabularies);
    std::vector<EncodedPair> pairs;
    for (const ScoredPair& line : lines)
      if (!line.too_long) pairs.push_back(framed_pair(vocabularies, line.target, line.source, framing));
    const auto backward = pair_scores(*reverse_.model, pairs, framing, a_.batch_tokens);
    require_numbers(backward, path, numbers);
    const auto entropy = [](const std::vector<float>& scores) { return -score_of(scores) / static_cast<double>(scores.size()); };
    std::vector<double> both;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const double h = entropy(forward[i]), other = entropy(backward[i]);
      both.push_back(std::exp(-(std::abs(h - other) + (h + other) / 2)));
    }
    return both;
  }

 private:
  const ScoreArguments& a_;
  LoadedModel reverse_;
};

// Reads some thousand pairs at a time, so that files of any size work; returns false at the end.
bool score_window(const ScoreArguments& a, const LoadedModel& loaded, const BothDirections* both, PairInput& input, ResultFile& output,
                  double bytes, TagCheck& tags, PieceCheck& checked, TooLong& too_long, TaskProgress& progress) {
  const Vocabularies& vocabularies = loaded.description.vocabularies;
  const int64_t first_line = input.line_number() + 1;
  const double begin = input.bytes_read();
  const SearchOptions framing = with_prefixes(loaded.description.search, vocabularies);
  const int64_t longest = std::min(a.max_length, longest_sentence(loaded.description.config));
  std::vector<EncodedPair> pairs;
  std::vector<int64_t> numbers;  // of the lines of pairs
  std::vector<ScoredPair> lines;
  ScoredPair next;
  bool more = true;
  while (lines.size() < 4096 && (more = input.next(next))) {
    if (!a.pieces) tags.see(next.source);
    pairs.push_back(encoded(a, vocabularies, next, framing));
    if (a.pieces) checked.see(next.source, pairs.back().source, vocabularies.source());
    if (a.pieces) checked.see(next.target, pairs.back().target, vocabularies.target());
    lines.push_back(std::move(next));
    numbers.push_back(input.line_number());
    const size_t length = std::max(pairs.back().source.size(), pairs.back().target.size());
    if (length <= static_cast<size_t>(longest) && (!both || both->has_room(lines.back()))) continue;
    if (!a.n_best.empty())  // a list with a hole could not be sorted by its scores
      throw DataError(fmt::format("{}:{}: a sentence of {} tokens; split it{}", input.path(), input.line_number(), length,
                                  longest < a.max_length ? fmt::format(": the model has positions for {}", longest)
                                                         : fmt::format(", or raise --max-length (now {})", longest)));
    lines.back().too_long = true;
    too_long.add(input.line_number());
    pairs.pop_back();
    numbers.pop_back();
  }
  const double window = input.bytes_read() - begin;
  const auto scored = [&](int64_t done) {
    if (progress.due())
      progress.tell((begin + window * static_cast<double>(done) / static_cast<double>(pairs.size())) / bytes,
                    counted(first_line - 1 + done, "pair"));
  };
  const std::vector<std::vector<float>> scores = pair_scores(*loaded.model, pairs, framing, a.batch_tokens, scored);
  require_numbers(scores, input.path(), numbers);
  const std::vector<double> of_both = both ? both->scores(lines, scores, input.path(), numbers) : std::vector<double>();
  const auto aligned = a.alignment ? pair_alignments(*loaded.model, vocabularies.source(), pairs, framing, a.batch_tokens)
                                   : std::vector<std::vector<int32_t>>();
  for (size_t line = 0, i = 0; line < lines.size(); ++line) {
    if (lines[line].too_long) {
      output.stream() << "nan\n";
      continue;
    }
    if (both) {
      output.stream() << fmt::format("{:.6g}\n", of_both[i++]);
      continue;
    }
    if (!a.n_best.empty()) {
      const double sum = score_of(scores[i]), score = a.per_token ? sum / static_cast<double>(scores[i].size()) : sum;
      output.stream() << with_feature(lines[line].entry, a.feature, score) << '\n';
      ++i;
      continue;
    }
    const auto tokens = std::span(pairs[i].target).last(scores[i].size());
    output.stream() << score_line(scores[i], tokens, vocabularies.target(), a.per_token, a.tokens);
    if (a.alignment) {
      const EncodedLine from = text_tokens(lines[line].source, vocabularies.source()),
                        to = vocabularies.target().encode_with_bytes(lines[line].target);
      output.stream() << '\t' << alignment_text({lines[line].source, from}, {lines[line].target, to}, aligned[i], *a.alignment);
    }
    output.stream() << '\n';
    ++i;
  }
  output.flush(input.line_number());
  return more;
}

// Throws ConfigError unless the options say what is scored.
void check_input(const ScoreArguments& a) {
  if (!a.n_best.empty()) {
    if (a.source.empty() || !a.target.empty() || !a.tsv.empty())
      throw ConfigError("--n-best needs --source, the lines that were translated, and neither --target nor --tsv");
    if (a.tokens || a.alignment) throw ConfigError("--tokens and --alignment are for pairs; leave them out, or --n-best");
  } else if (a.tsv.empty() ? a.source.empty() || a.target.empty() : !a.source.empty() || !a.target.empty()) {
    throw ConfigError("name either --source and --target, or --tsv, or --source and --n-best");
  }
  if (!a.reverse.empty() && (!a.n_best.empty() || a.tokens || a.alignment || a.pieces || a.per_token))
    throw ConfigError("--reverse gives one score a pair of text; leave out --n-best, --tokens, --alignment, --pieces and --per-token");
  if (a.pieces && a.alignment) throw ConfigError("--alignment needs text, and --pieces reads pieces; leave out one of the two");
}

// Has the model of the other direction translate into the language that the first one reads.
LoadedModel into_reverse(LoadedModel reverse, Languages forward, const std::string& target) {
  ModelDescription& d = reverse.description;
  if (!target.empty()) forward.target = target;
  const auto differ = [](const std::string& a, const std::string& b) {
    const std::string one = main_language(comparable_language(a)), other = main_language(comparable_language(b));
    return one.size() == 2 && other.size() == 2 && one != other;  // longer codes may be other names of the same
  };
  const auto named = [](const std::string& code) { return code.empty() ? "?" : code; };
  if (differ(d.languages.source, forward.target) || differ(d.languages.target, forward.source))
    throw ConfigError(fmt::format("--reverse {} translates {} into {}, but the other direction of --model is {} into {}; name that model",
                                  d.directory, named(d.languages.source), named(d.languages.target), named(forward.target),
                                  named(forward.source)));
  if (target_languages(d.languages).empty() && typed_tags(d.vocabularies.source()).empty()) return reverse;  // it has one target
  if (forward.source.empty())
    throw ConfigError(
        fmt::format("--reverse {} translates into several languages, and --model does not say which one it reads; take a "
                    "model of one target language",
                    d.directory));
  d.search = into_language(d.search, d, forward.source);
  return reverse;
}

void run_score(const ScoreArguments& a) {
  check_input(a);
  const auto files = real_file_system();
  const auto load = [&](const std::string& model) {
    return load_model(*files, usable_model(*files, model, [](const std::string& line) { tell("{}\n", line); }), a.compute);
  };
  LoadedModel loaded = load(a.model);
  std::optional<BothDirections> both;
  if (!a.reverse.empty()) both.emplace(a, into_reverse(load(a.reverse), loaded.description.languages, a.target_language));
  loaded.description.search = into_language(loaded.description.search, loaded.description, a.target_language);
  ResultFile output(a.output);
  const char* const what = "scores";
  StopNote note(output.stopped(what, 0));
  output.refuse({{"--source", a.source},
                 {"--target", a.target},
                 {"--tsv", a.tsv},
                 {"--n-best", a.n_best},
                 {"--model", loaded.description.directory},
                 {"--reverse", a.reverse}});
  PairInput input(a, loaded.description.languages);
  int64_t scored = 0;
  TagCheck tags(loaded.description.vocabularies.source(), with_prefixes(loaded.description.search, loaded.description.vocabularies));
  PieceCheck checked;
  TooLong too_long;
  const double bytes = input.bytes();
  std::optional<TaskProgress> progress(std::in_place, "score", screen_beside(a.output));
  try {
    for (bool more = true; more;) {
      more = score_window(a, loaded, both ? &*both : nullptr, input, output, bytes, tags, checked, too_long, *progress);
      scored = input.line_number();
      note.set(output.stopped(what, scored));
    }
  } catch (const DataError& e) {
    throw DataError(e.what() + output.left(what, scored));
  }
  progress.reset();
  tell("{}{}{}", tags.warning(), checked.warning("--pieces"),
       too_long.warning(input.path(), std::min(a.max_length, longest_sentence(loaded.description.config))));
  WholeWrite write;
  output.close();
  write.done(a.output == "-" ? "" : fmt::format("{} is complete", a.output));
}

}  // namespace

void add_score(CLI::App& app) {
  auto* sub = app.add_subcommand("score", "log-probabilities (nats) of given translations, one per line");
  auto a = std::make_shared<ScoreArguments>();
  sub->add_option("-m,--model", a->model, "run directory, checkpoint or model directory")->required();
  sub->add_option("--reverse", a->reverse,
                  "a model of the other direction: scores of both together, by dual conditional cross-entropy, 1 at best, for "
                  "`starling clean`");
  sub->add_option("--source", a->source, "source text, one sentence a line (plain, .gz, .zst)");
  sub->add_option("--target", a->target, "its translation");
  sub->add_option("--tsv", a->tsv, "in place of both: one file, source and target separated by a tab; or a .tmx or .csv file");
  sub->add_option(
      "--n-best", a->n_best,
      "in place of --target: an n-best list, number ||| text ||| features ||| score; its lines come back with one feature more");
  sub->add_option("--n-best-feature", a->feature, "name of that feature")->capture_default_str();
  sub->add_flag("--pieces", a->pieces, "both sides are pieces of the vocabularies with spaces between them");
  add_target_language_option(*sub, a->target_language);
  sub->add_option("-o,--output", a->output, "where scores go; - = standard output; a file is FILE.partial until it is complete")
      ->capture_default_str();
  sub->add_flag("--per-token", a->per_token, "divide by the number of target tokens, end of sentence included");
  sub->add_flag("--tokens", a->tokens, "after the score, separated by tabs: the target's pieces, and the log-probability of each");
  sub->add_option_function<std::string>(
         "--alignment", [a](const std::string& unit) { a->alignment = from_word<AlignmentUnit>(unit); },
         "words or pieces: last, after a tab, pairs of positions, source-target, from the attention (docs/guides/alignment.md)")
      ->check(CLI::IsMember({"words", "pieces"}));
  sub->add_option("--max-length", a->max_length, "a pair with a longer sentence has nan in place of a score, tokens a side")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  sub->add_option("--batch-tokens", a->batch_tokens, "target tokens computed at once")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_device_options(*sub, a->compute);
  sub->callback([a] { run_score(*a); });
}

}  // namespace starling
