// The verb `starling align`: links between the words of parallel text (docs/guides/alignment.md).
#include <optional>

#include "alignment/align_files.h"
#include "base/affinity.h"
#include "base/counted.h"
#include "base/messages.h"
#include "base/quotes.h"
#include "base/stop_note.h"
#include "cli/verbs.h"
#include "config/words.h"
#include "storage/outputs.h"
#include "storage/result_file.h"

namespace starling {
namespace {

constexpr int64_t kFlushed = 500;  // pairs

struct AlignArguments {
  AlignJob job;
  std::string output = "-", scores, vocabulary, source_vocabulary, target_vocabulary;
  int threads = 0;
  bool quiet = false;
};

void run_align(AlignArguments& a) {
  require_files(a.job.text);
  std::vector<NamedPath> inputs;
  for (const std::string& path : {a.job.text.source, a.job.text.target, a.job.text.tsv})
    if (!path.empty()) inputs.push_back({"the text", path});
  for (const std::string& path : {a.vocabulary, a.source_vocabulary, a.target_vocabulary})
    if (!path.empty()) inputs.push_back({"--vocab", path});
  if (!a.job.load.empty()) inputs.push_back({"--load", a.job.load});
  if (!a.scores.empty() && (a.scores == "-" || real_path(a.scores) == real_path(a.output)))
    throw ConfigError("--scores needs a file of its own, other than --output's; give it another name");
  if (!a.job.save.empty() && (!a.job.load.empty() || real_path(a.job.save) == real_path(a.output) ||
                              (!a.scores.empty() && real_path(a.job.save) == real_path(a.scores))))
    throw ConfigError("--save needs a file of its own, and a training; leave out --load, or give it another name");
  for (const NamedPath& output : {NamedPath{"--output", a.output}, {"--scores", a.scores}, {"--save", a.job.save}}) {
    if (output.path.empty()) continue;
    refuse_own_input(output, inputs);
    refuse_run_files(output);
  }
  if (a.source_vocabulary.empty()) a.source_vocabulary = a.vocabulary;
  if (a.target_vocabulary.empty()) a.target_vocabulary = a.vocabulary;
  std::optional<Vocabulary> source, target;
  if (a.job.parts == AlignedParts::pieces) {
    if (a.source_vocabulary.empty() || a.target_vocabulary.empty())
      throw ConfigError("--parts pieces needs the vocabulary of the model; name it with --vocab, such as run/vocab.spm");
    a.job.source_vocabulary = &source.emplace(Vocabulary::load(a.source_vocabulary));
    a.job.target_vocabulary = &target.emplace(Vocabulary::load(a.target_vocabulary));
  } else if (!a.source_vocabulary.empty() || !a.target_vocabulary.empty()) {
    throw ConfigError("--vocab is for --parts pieces; add that, or leave --vocab out");
  }
  if (a.job.aligner.slips && !a.job.load.empty())
    throw ConfigError("--as-fast-align is for training, and --load goes without; leave one of the two out");
  if (a.job.aligner.slips && !a.job.save.empty())
    throw ConfigError("--save keeps what is likely, and --as-fast-align aligns by all; leave one of the two out");
  if (a.job.aligner.slips && a.job.aligner.model != AlignmentModel::diagonal)
    throw ConfigError("--as-fast-align is for the training of fast_align's model; add --model diagonal, or leave it out");
  a.job.aligner.threads = a.threads > 0 ? a.threads : usable_cores();
  ResultFile links(a.output), scores(a.scores.empty() ? "-" : a.scores);
  const StopNote note("stopped: the links are not complete; the same command begins again");
  const auto say = [&](const std::string& line) {
    if (!a.quiet) tell("{}\n", line);
  };
  int64_t written = 0;
  const AlignedCounts text =
      align_files(a.job, a.quiet ? TaskScreen() : standard_error_screen(), say, [&](const Links& found, double score) {
        ++written;
        links.stream() << links_line(found) << '\n';
        if (written % kFlushed == 0) links.flush(written);
        if (a.scores.empty()) return;
        scores.stream() << fmt::format("{:.6g}\n", score);
        if (written % kFlushed == 0) scores.flush(written);
      });
  links.close();
  if (!a.scores.empty()) scores.close();
  if (text.too_long > 0)
    tell("warning: {} of more than some 4,000 words a side: without links, and nan for a score\n", counted(text.too_long, "pair"));
  say(fmt::format("{}, {}; {}", counted(text.pairs, "pair"), counted(text.links, "link"),
                  a.job.load.empty() ? "trained on " + counted(text.sampled, "pair") : "by what " + printable(a.job.load) + " has learnt"));
}

}  // namespace

void add_align(CLI::App& app) {
  CLI::App* const verb = app.add_subcommand("align", "link the words of parallel text, for guided alignment (docs/guides/alignment.md)");
  const auto a = std::make_shared<AlignArguments>();
  AlignJob& job = a->job;
  verb->add_option("--source", job.text.source, "source text, one sentence a line (plain, .gz, .zst)");
  verb->add_option("--target", job.text.target, "its translation");
  verb->add_option("--tsv", job.text.tsv, "in place of both: one file, source and target separated by a tab; or a .tmx or .csv file");
  verb->add_option("--source-language", job.text.source_language, "code of the language to take from a .tmx");
  verb->add_option("--target-language", job.text.target_language, "of its translation");
  verb->add_option("-o,--output", a->output, "where links go, pairs source-target of positions from 0; - = standard output")
      ->capture_default_str();
  verb->add_option("--scores", a->scores,
                   "also write how parallel each pair is: the mean log-probability of a word, nats, of both directions");
  verb->add_option_function<std::string>(
          "--parts", [a](const std::string& word) { a->job.parts = from_word<AlignedParts>(word); },
          "what is aligned: words (in lower case, without the marks around them), spaces (what stands between them, as it is), "
          "pieces (of --vocab)")
      ->check(CLI::IsMember({"words", "spaces", "pieces"}))
      ->default_str("words");
  verb->add_option("--vocab", a->vocabulary, "SentencePiece model of both sides, for pieces");
  verb->add_option("--source-vocab", a->source_vocabulary, "of the source; default: --vocab");
  verb->add_option("--target-vocab", a->target_vocabulary, "of the target; default: --vocab");
  constexpr auto kHow = words(Symmetrisation{});
  verb->add_option_function<std::string>(
          "--symmetrise", [a](const std::string& word) { a->job.symmetrisation = from_word<Symmetrisation>(word); },
          "how both directions are put together")
      ->check(CLI::IsMember(std::vector<std::string>(kHow.begin(), kHow.end())))
      ->default_str(kHow.front());
  verb->add_option("--sample", job.sample, "pairs to train on, spread over the text; all are aligned")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  verb->add_option("--save", job.save, "also write what was learnt, a Zstandard archive: which words translate which");
  CLI::Option* const load = verb->add_option("--load", job.load, "align by what --save wrote, without training");
  constexpr auto kModels = words(AlignmentModel{});
  verb->add_option_function<std::string>(
          "--model", [a](const std::string& word) { a->job.aligner.model = from_word<AlignmentModel>(word); },
          "what is trained: the HMM, fast_align's model 2 with a prior for the diagonal, or IBM model 1")
      ->check(CLI::IsMember(std::vector<std::string>(kModels.begin(), kModels.end())))
      ->default_str(kModels.front())
      ->excludes(load);
  verb->add_option("--iterations", job.aligner.iterations,
                   "passes over these pairs, the last of which only aligns; of the others the hmm's first half trains diagonal")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  verb->add_flag("--as-fast-align", job.aligner.slips, "compute the prior's tension with fast_align's slips, to get its numbers");
  verb->add_option("--threads", a->threads, "0 = all cores this process may use; they do not change the links")->check(CLI::Range(0, 4096));
  verb->add_flag("--quiet", a->quiet, "say nothing but errors");
  verb->callback([a] { run_align(*a); });
}

}  // namespace starling
