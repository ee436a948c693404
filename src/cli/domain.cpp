// The verb `starling domain`: how much more like one text each line is than like the whole (docs/guides/cleaning.md).
#include <optional>

#include "base/affinity.h"
#include "base/counted.h"
#include "base/messages.h"
#include "base/stop_note.h"
#include "cli/verbs.h"
#include "likeness/likeness.h"
#include "storage/outputs.h"
#include "storage/result_file.h"

namespace starling {
namespace {

constexpr int64_t kFlushedScores = 500;

struct DomainArguments {
  LikenessJob job;
  std::string output = "-", vocabulary;
  int threads = 0;
  bool quiet = false;
};

void run_domain(DomainArguments& a) {
  LikenessJob& job = a.job;
  const auto has_pairs = [](const CorpusFiles& text) { return !text.target.empty() || !text.tsv.empty(); };
  if (has_pairs(job.text) != has_pairs(job.like))
    throw ConfigError("one text has pairs and the other has one language; give both with targets, or both with sources alone");
  job.one_language = !has_pairs(job.text);
  std::vector<NamedPath> inputs;
  for (const CorpusFiles* text : {&job.text, &job.like}) {
    if (!job.one_language)
      require_files(*text);
    else if (text->source.empty() || is_pipe(text->source))
      throw ConfigError("name the text with --source or --tsv, and what it is compared with by --like-source or --like-tsv, as files");
    for (const std::string& path : {text->source, text->target, text->tsv})
      if (!path.empty()) inputs.push_back({"the text", path});
  }
  if (!a.vocabulary.empty()) inputs.push_back({"--vocab", a.vocabulary});
  refuse_own_input({"--output", a.output}, inputs);
  refuse_run_files({"--output", a.output});
  std::optional<Vocabulary> vocabulary;
  if (!a.vocabulary.empty()) {
    job.parts = AlignedParts::pieces;
    job.source_vocabulary = job.target_vocabulary = &vocabulary.emplace(Vocabulary::load(a.vocabulary));
  }
  job.threads = a.threads > 0 ? a.threads : usable_cores();
  ResultFile scores(a.output);
  const StopNote note("stopped: the scores are not complete; the same command begins again");
  int64_t written = 0;
  const LikenessCounts counts = score_likeness(job, a.quiet ? TaskScreen() : standard_error_screen(), [&](double score) {
    scores.stream() << fmt::format("{:.6g}\n", score);
    if (++written % kFlushedScores == 0) scores.flush(written);
  });
  scores.close();
  if (!a.quiet) tell("{}; models of {} each\n", counted(counts.lines, "line"), counted(counts.sampled, "line"));
}

}  // namespace

void add_domain(CLI::App& app) {
  CLI::App* const verb = app.add_subcommand("domain", "score lines by how like they are to another text (docs/guides/cleaning.md)");
  const auto a = std::make_shared<DomainArguments>();
  for (const auto& [prefix, text, what] : {std::tuple("--", &a->job.text, "text to score"),
                                           {"--like-", &a->job.like, "text that it is compared with, such as a development set"}}) {
    verb->add_option(std::string(prefix) + "source", text->source, std::string(what) + ", one sentence a line (plain, .gz, .zst)");
    verb->add_option(std::string(prefix) + "target", text->target, "its translation; without, text of one language is scored");
    verb->add_option(std::string(prefix) + "tsv", text->tsv, "in place of both: source and target separated by a tab");
  }
  verb->add_option("-o,--output", a->output, "where scores go, one a line, higher for what is more alike; - = standard output")
      ->capture_default_str();
  verb->add_option("--vocab", a->vocabulary, "compare the pieces of this SentencePiece model; default: words in lower case");
  verb->add_option("--sample", a->job.sample, "lines that each model is trained on, spread over its text")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
      ->capture_default_str();
  verb->add_option("--threads", a->threads, "0 = all cores this process may use; they do not change the scores")
      ->check(CLI::Range(0, 4096));
  verb->add_flag("--quiet", a->quiet, "say nothing but errors");
  verb->callback([a] { run_domain(*a); });
}

}  // namespace starling
