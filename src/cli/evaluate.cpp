// The verb `starling evaluate`. Its output equals sacreBLEU's for the same files, so that each can check the other and scripts that read
// sacreBLEU's JSON work here too. One metric gives one JSON object, several give an array; several systems give a table or an array by
// system, optionally with a test of each against the first.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/counted.h"
#include "base/error.h"
#include "base/messages.h"
#include "base/stop_note.h"
#include "base/task_progress.h"
#include "cli/verbs.h"
#include "data/line_reader.h"
#include "metrics/significance.h"
#include "metrics/system_table.h"
#include "storage/outputs.h"

namespace starling {

namespace {

struct EvaluateArguments {
  std::vector<std::string> hypotheses, references;
  std::vector<std::string> metrics{"bleu"};
  std::string tokenize = "auto";
  bool lowercase = false;
  TerOptions ter;
  std::string format = "text";
  int width = 2;
  bool bootstrap = false, exchanges = false;
  int resamples = 1000, trials = 10000;
  std::uint64_t seed = 12345;
};

std::vector<std::string> read_lines(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  for (std::string_view line; reader.next(line);) lines.emplace_back(line);
  return lines;
}

using Corpora = std::vector<std::vector<std::string>>;

void check_line_counts(const EvaluateArguments& arguments, const std::string& name, std::size_t hypotheses, const Corpora& references) {
  for (std::size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() == hypotheses) continue;
    throw DataError(fmt::format("{} has {}, but {} has {}; line n of the one must correspond to line n of the other",
                                name == "-" ? "standard input" : name, counted(hypotheses, "line"), arguments.references[r],
                                references[r].size()));
  }
}

// A file that is named repeatedly, as by `--hypotheses base.txt *.txt`, counts once.
std::vector<std::string> distinct(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::find(once.begin(), once.end(), name) == once.end())
      once.push_back(name);
    else
      tell("starling: --hypotheses names {} again, which counts as one system\n", name);
  }
  return once;
}

bool measures(const EvaluateArguments& a, const char* metric) {
  return std::find(a.metrics.begin(), a.metrics.end(), metric) != a.metrics.end();
}

std::string about_test(const EvaluateArguments& a) {
  if (!a.bootstrap && !a.exchanges) return "";
  const std::string first =
      a.bootstrap
          ? fmt::format(
                "Paired bootstrap resampling, {} resamples, seed {}. In brackets: the mean of the resampled corpora's scores and half of "
                "the\ninterval that holds 95 % of them.\n",
                a.resamples, a.seed)
          : fmt::format("Paired approximate randomisation, {} trials, seed {}.\n", a.trials, a.seed);
  return first +
         "p: the probability of a difference to the baseline at least as large as the one seen, if only chance made it.\n"
         "* marks p < 0.05: chance alone seldom makes such a difference. How much it matters is another question.";
}

// Returns "nrefs:1|case:..." with the test's parameters inserted where sacreBLEU has them: "nrefs:1|bs:1000|seed:12345|case:...".
std::string tested_signature(const std::string& signature, const EvaluateArguments& a) {
  if (!a.bootstrap && !a.exchanges) return signature;
  const std::string test = a.bootstrap ? fmt::format("bs:{}", a.resamples) : fmt::format("ar:{}", a.trials);
  return fmt::format("{}|{}|seed:{}{}", signature.substr(0, signature.find('|')), test, a.seed, signature.substr(signature.find('|')));
}

std::vector<TestedScore> tested(const std::vector<CountedMetric>& systems, const EvaluateArguments& a, const TestWatch& watch) {
  if (a.bootstrap) return paired_bootstrap(systems, a.resamples, a.seed, watch);
  if (a.exchanges) return paired_randomization(systems, a.trials, a.seed, watch);
  std::vector<TestedScore> scores;
  for (const CountedMetric& system : systems) scores.push_back({.score = system.corpus.score});
  return scores;
}

void compare_systems(const EvaluateArguments& a, const std::vector<std::string>& names, const Corpora& hypotheses,
                     const Corpora& references, const EvaluateOptions& options) {
  ComparedSystems compared{.names = names, .about = about_test(a)};
  for (const std::string& metric : a.metrics) {
    TaskProgress progress(metric, standard_error_screen());
    std::vector<CountedMetric> systems;
    for (const auto& lines : hypotheses) {
      if (progress.due()) progress.tell(-1, fmt::format("counting in system {} of {}", systems.size() + 1, hypotheses.size()));
      systems.push_back(count_metric(metric, lines, references, options));
    }
    progress.estimate_from(0);
    const TestWatch watch = [&](double share) {
      if (progress.due()) progress.tell(share, "testing");
    };
    const MetricScore& baseline = systems.front().corpus;
    compared.metrics.push_back({baseline.name, tested_signature(baseline.signature, a), tested(systems, a, watch)});
  }
  if (a.format == "json") {
    std::cout << system_json(compared).dump(1) << "\n";
  } else {
    std::cout << system_table(compared, a.width);
  }
}

void print_json(const std::vector<MetricScore>& scores) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const MetricScore& score : scores) json.push_back(score.to_json());
  std::cout << (scores.size() == 1 ? json[0] : json).dump(1) << "\n";
}

void run_evaluate(const EvaluateArguments& arguments) {
  const StopNote note("stopped: no score is complete; the same command begins again");
  std::vector<NamedPath> inputs;
  for (const std::string& path : arguments.hypotheses) inputs.push_back({"--hypotheses", path});
  for (const std::string& path : arguments.references) inputs.push_back({"--references", path});
  refuse_own_input({"standard output", "-"}, inputs);
  refuse_run_files({"standard output", "-"});
  const std::vector<std::string> names = distinct(arguments.hypotheses);
  if (names.size() == 1 && (arguments.bootstrap || arguments.exchanges)) {
    throw ConfigError(fmt::format(
        "a paired test compares systems, but --hypotheses names only {}; give the baseline first, then the others", names.front()));
  }
  Corpora hypotheses, references;
  for (const std::string& path : arguments.references) references.push_back(read_lines(path));
  for (const std::string& name : names) {
    hypotheses.push_back(read_lines(name));
    check_line_counts(arguments, name, hypotheses.back().size(), references);
  }
  EvaluateOptions options{.lowercase = arguments.lowercase, .ter = arguments.ter};
  if (std::any_of(arguments.metrics.begin(), arguments.metrics.end(), is_tokenized)) {
    const TokenizerChoice choice = choose_tokenizer(arguments.tokenize, references);
    tell(choice);
    options.tokenizer = choice.tokenizer;
  }
  if (const std::string warning = ter_warning(references, arguments.ter); !warning.empty() && measures(arguments, "ter"))
    tell("starling: warning: {}\n", warning);
  if (names.size() > 1) return compare_systems(arguments, names, hypotheses, references, options);
  std::vector<MetricScore> scores;
  for (const std::string& metric : arguments.metrics) scores.push_back(evaluate(metric, hypotheses.front(), references, options));
  if (arguments.format == "json") return print_json(scores);
  for (const MetricScore& score : scores) std::cout << score.signed_text(arguments.width) << "\n";
}

void add_test_options(CLI::App& sub, EvaluateArguments& a) {
  auto* bootstrap = sub.add_flag("--paired-bs", a.bootstrap,
                                 "With several systems: test each against the first by paired bootstrap resampling, with 95 % intervals");
  auto* exchanges =
      sub.add_flag("--paired-ar", a.exchanges, "With several systems: test each against the first by paired approximate randomisation");
  exchanges->excludes(bootstrap);
  sub.add_option("--paired-bs-n", a.resamples, "Corpora that --paired-bs draws")
      ->check(CLI::Range(1, 10000000))
      ->needs(bootstrap)
      ->capture_default_str();
  sub.add_option("--paired-ar-n", a.trials, "Trials of --paired-ar")
      ->check(CLI::Range(1, 10000000))
      ->needs(exchanges)
      ->capture_default_str();
  sub.add_option("--seed", a.seed, "Seed of the draws; equal seeds give equal figures")->capture_default_str();
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* sub = app.add_subcommand(
      "evaluate", "Score translations against references: BLEU, chrF, chrF++, TER as in sacreBLEU; GLEU; AER of word alignments");
  const auto arguments = std::make_shared<EvaluateArguments>();
  sub->add_option("--hypotheses", arguments->hypotheses,
                  "The translations, one per line (plain, .gz, .zst); - reads standard input; several files are several systems, the first "
                  "the baseline")
      ->required();
  sub->add_option("--references", arguments->references, "The reference translations, line by line; repeat the option for more references")
      ->required()
      ->allow_extra_args(false);
  sub->add_option("--metrics", arguments->metrics, "Metrics, with commas or blanks between them, printed in this order")
      ->delimiter(',')
      ->transform(CLI::IsMember({"bleu", "chrf", "chrf++", "ter", "gleu", "aer"}, CLI::ignore_case))
      ->capture_default_str();
  add_tokenize_option(*sub, arguments->tokenize);
  sub->add_flag("--lowercase", arguments->lowercase, "Ignore case in BLEU, GLEU and chrF (TER always does); off by default");
  sub->add_flag("--ter-normalized", arguments->ter.normalized, "TER: decode entities and set punctuation apart; off by default");
  sub->add_flag("--ter-asian-support", arguments->ter.asian_support,
                "TER: with --ter-normalized, set Chinese characters and CJK punctuation apart; off by default");
  sub->add_option("--format", arguments->format, "Output: text gives a line for each metric; json gives the score unrounded")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  sub->add_option("--width", arguments->width, "Decimals of the score in text output")->check(CLI::Range(0, 15))->capture_default_str();
  add_test_options(*sub, *arguments);
  sub->callback([arguments] { run_evaluate(*arguments); });
}

}  // namespace starling
