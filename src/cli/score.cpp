// The verb `starling score`: prints log-probabilities of given translations and, on request, of each of their pieces. It prints one line
// per sentence, so that output and input can be pasted together. See docs/reference/formats.md.
#include <unistd.h>

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
#include "evaluation/pair_scores.h"
#include "interop/usable_model.h"
#include "storage/outputs.h"
#include "storage/result_file.h"

namespace starling {
namespace {

struct ScoreArguments {
  std::string model, source, target, tsv, target_language, output = "-";
  DeviceChoice compute{.precision = "f32"};
  int64_t batch_tokens = 4000, max_length = 2000;
  bool per_token = false, tokens = false;
  std::optional<AlignmentUnit> alignment;
};

// Finite weights can still be too large to compute with.
void require_numbers(const std::vector<std::vector<float>>& scores, const std::string& path, int64_t first_line) {
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isfinite(score_of(scores[i])))
      throw DataError(fmt::format(
          "{}:{}: the model gives this pair the log-probability {}: its weights are too large to compute with; use another checkpoint",
          path, first_line + static_cast<int64_t>(i), score_of(scores[i])));
}

// Reads some thousand pairs at a time, so that files of any size work; returns false at the end.
bool score_window(const ScoreArguments& a, const LoadedModel& loaded, PairReader& reader, ResultFile& output, double bytes,
                  TaskProgress& progress) {
  const Vocabularies& vocabularies = loaded.description.vocabularies;
  const std::string& path = a.tsv.empty() ? a.source : a.tsv;
  const int64_t first_line = reader.line_number() + 1;
  const auto begin = static_cast<double>(reader.bytes_read());
  const SearchOptions framing = with_prefixes(loaded.description.search, vocabularies);
  const int64_t longest = std::min(a.max_length, longest_sentence(loaded.description.config));
  std::vector<EncodedPair> pairs;
  std::vector<std::pair<std::string, std::string>> lines;  // for alignments
  std::string_view source, target;
  bool more = true;
  while (pairs.size() < 4096 && (more = reader.next(source, target))) {
    pairs.push_back(framed_pair(vocabularies, source, target, framing));
    if (a.alignment) lines.emplace_back(source, target);
    const size_t length = std::max(pairs.back().source.size(), pairs.back().target.size());
    if (length > static_cast<size_t>(longest))
      throw DataError(fmt::format("{}:{}: a sentence of {} tokens; split it{}", path, reader.line_number(), length,
                                  longest < a.max_length ? fmt::format(": the model has positions for {}", longest)
                                                         : fmt::format(", or raise --max-length (now {})", longest)));
  }
  const double window = static_cast<double>(reader.bytes_read()) - begin;
  const auto scored = [&](int64_t done) {
    if (progress.due())
      progress.tell((begin + window * static_cast<double>(done) / static_cast<double>(pairs.size())) / bytes,
                    counted(first_line - 1 + done, "pair"));
  };
  const std::vector<std::vector<float>> scores = pair_scores(*loaded.model, pairs, framing, a.batch_tokens, scored);
  require_numbers(scores, path, first_line);
  const auto aligned = a.alignment ? pair_alignments(*loaded.model, pairs, framing, a.batch_tokens) : std::vector<std::vector<int32_t>>();
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto tokens = std::span(pairs[i].target).last(scores[i].size());
    output.stream() << score_line(scores[i], tokens, vocabularies.target(), a.per_token, a.tokens);
    if (a.alignment) {
      const EncodedLine from = vocabularies.source().encode_with_bytes(lines[i].first),
                        to = vocabularies.target().encode_with_bytes(lines[i].second);
      output.stream() << '\t' << alignment_text({lines[i].first, from}, {lines[i].second, to}, aligned[i], *a.alignment);
    }
    output.stream() << '\n';
  }
  output.flush(reader.line_number());
  return more;
}

void run_score(const ScoreArguments& a) {
  const auto files = real_file_system();
  LoadedModel loaded = load_model(*files, usable_model(*files, a.model, [](const std::string& line) { tell("{}\n", line); }), a.compute);
  loaded.description.search = into_language(loaded.description.search, loaded.description.languages, a.target_language);
  ResultFile output(a.output);
  const char* const what = "scores";
  StopNote note(output.stopped(what, 0));
  const std::string name = a.output == "-" ? "standard output" : "--output";
  for (const std::string& path : {a.output, output.written_path()})
    refuse_own_input({name, path},
                     {{"--source", a.source}, {"--target", a.target}, {"--tsv", a.tsv}, {"--model", loaded.description.directory}});
  refuse_run_files({name, a.output});
  const CorpusFiles corpus{a.source, a.target, a.tsv, 1};
  if (a.tsv.empty() ? a.source.empty() || a.target.empty() : !a.source.empty() || !a.target.empty())
    throw ConfigError("name either --source and --target, or --tsv");
  PairReader reader(corpus);
  int64_t scored = 0;
  const auto bytes = static_cast<double>(std::max<uint64_t>(corpus_bytes({.train = {corpus}}), 1));
  const bool shows = a.output != "-" || !isatty(STDOUT_FILENO);
  std::optional<TaskProgress> progress(std::in_place, "score", shows ? standard_error_screen() : TaskScreen());
  try {
    for (bool more = true; more;) {
      more = score_window(a, loaded, reader, output, bytes, *progress);
      scored = reader.line_number();
      note.set(output.stopped(what, scored));
    }
  } catch (const DataError& e) {
    throw DataError(e.what() + output.left(what, scored));
  }
  progress.reset();
  WholeWrite write;
  output.close();
  write.done(a.output == "-" ? "" : fmt::format("{} is complete", a.output));
}

}  // namespace

void add_score(CLI::App& app) {
  auto* sub = app.add_subcommand("score", "log-probabilities (nats) of given translations, one a line");
  auto a = std::make_shared<ScoreArguments>();
  sub->add_option("-m,--model", a->model, "run directory, checkpoint or model directory")->required();
  sub->add_option("--source", a->source, "source text, one sentence a line (plain, .gz, .zst)");
  sub->add_option("--target", a->target, "its translation");
  sub->add_option("--tsv", a->tsv, "in place of both: one file, source and target separated by a tab");
  add_target_language_option(*sub, a->target_language);
  sub->add_option("-o,--output", a->output, "where scores go; - = standard output; a file is FILE.partial until it is complete")
      ->capture_default_str();
  sub->add_flag("--per-token", a->per_token, "divide by the number of target tokens, end of sentence included");
  sub->add_flag("--tokens", a->tokens, "after the score, separated by tabs: the target's pieces, and the log-probability of each");
  sub->add_option_function<std::string>(
         "--alignment", [a](const std::string& unit) { a->alignment = from_word<AlignmentUnit>(unit); },
         "words or pieces: last, after a tab, pairs of positions, source-target, from the attention (docs/guides/alignment.md)")
      ->check(CLI::IsMember({"words", "pieces"}));
  sub->add_option("--max-length", a->max_length, "longer sentences are an error, tokens a side")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  sub->add_option("--batch-tokens", a->batch_tokens, "target tokens computed at once")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_device_options(*sub, a->compute);
  sub->callback([a] { run_score(*a); });
}

}  // namespace starling
