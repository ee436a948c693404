// The verb `starling evaluate`. It prints what sacreBLEU prints for the same files, so that either can check the other and scripts
// that read sacreBLEU's JSON read this, too. One metric gives one JSON object, several give an array.
#include "cli/evaluate.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/metrics.h"
#include "text/unicode.h"

namespace starling {

namespace {

struct EvaluateArguments {
  std::string hypotheses;
  std::vector<std::string> references;
  std::vector<std::string> metrics{"bleu"};
  std::string tokenize = "13a";
  bool lowercase = false;
  std::string format = "text";
  int width = 2;
};

std::vector<std::string> read_lines(std::istream& in, const std::string& name) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (const auto offset = invalid_utf8_offset(line)) {
      const std::size_t number = lines.size() + 1;
      throw DataError(fmt::format("{}:{}: invalid UTF-8 at byte {} of the line; convert the file to UTF-8", name, number, *offset));
    }
    lines.push_back(std::move(line));
  }
  if (in.bad()) throw IoError(fmt::format("{}: reading failed after {} lines; check the device", name, lines.size()));
  return lines;
}

std::vector<std::string> read_file_lines(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  // A directory opens, and fails at the first byte.
  if (!in || (in.peek() == std::ifstream::traits_type::eof() && in.bad())) {
    throw IoError(fmt::format("{}: cannot be read: {}; check the path", path, errno != 0 ? std::strerror(errno) : "unknown reason"));
  }
  in.clear();
  return read_lines(in, path);
}

std::vector<std::string> read_hypotheses(const std::string& path) {
  return path == "-" ? read_lines(std::cin, "standard input") : read_file_lines(path);
}

using Corpora = std::vector<std::vector<std::string>>;

void check_line_counts(const EvaluateArguments& arguments, std::size_t hypotheses, const Corpora& references) {
  for (std::size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() == hypotheses) continue;
    const std::string name = arguments.hypotheses == "-" ? "standard input" : arguments.hypotheses;
    throw DataError(fmt::format("{} has {} lines, but {} has {}; line n of the one must correspond to line n of the other", name,
                                hypotheses, arguments.references[r], references[r].size()));
  }
}

void print_json(const std::vector<MetricScore>& scores) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const MetricScore& score : scores) json.push_back(score.to_json());
  std::cout << (scores.size() == 1 ? json[0] : json).dump(1) << "\n";
}

void run_evaluate(const EvaluateArguments& arguments) {
  const EvaluateOptions options{.tokenizer = bleu_tokenizer_from(arguments.tokenize), .lowercase = arguments.lowercase};
  const std::vector<std::string> hypotheses = read_hypotheses(arguments.hypotheses);
  Corpora references;
  for (const std::string& path : arguments.references) references.push_back(read_file_lines(path));
  check_line_counts(arguments, hypotheses.size(), references);
  std::vector<MetricScore> scores;
  for (const std::string& metric : arguments.metrics) scores.push_back(evaluate(metric, hypotheses, references, options));
  if (arguments.format == "json") return print_json(scores);
  for (const MetricScore& score : scores) std::cout << score.signed_text(arguments.width) << "\n";
}

}  // namespace

void add_evaluate(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("evaluate", "Score translations against references: BLEU, chrF, chrF++, TER as in sacreBLEU; GLEU");
  const auto arguments = std::make_shared<EvaluateArguments>();
  sub->add_option("--hypotheses", arguments->hypotheses, "The translations, one a line, UTF-8; - reads standard input")->required();
  sub->add_option("--references", arguments->references, "The reference translations, line by line; repeat the option for more references")
      ->required()
      ->allow_extra_args(false);
  sub->add_option("--metrics", arguments->metrics, "Comma-separated list of metrics, printed in this order")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"bleu", "chrf", "chrf++", "ter", "gleu"}))
      ->capture_default_str();
  sub->add_option("--tokenize", arguments->tokenize, "Tokenizer of BLEU and GLEU; char and zh for Chinese, none for text that is tokenized")
      ->check(CLI::IsMember({"13a", "none", "char", "zh"}))
      ->capture_default_str();
  sub->add_flag("--lowercase", arguments->lowercase, "Ignore case in BLEU, GLEU and chrF (TER always does); off by default");
  sub->add_option("--format", arguments->format, "Output: text gives a line for each metric; json gives the score unrounded")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  sub->add_option("--width", arguments->width, "Decimals of the score in text output")->check(CLI::Range(0, 15))->capture_default_str();
  sub->callback([arguments] { run_evaluate(*arguments); });
}

}  // namespace starling
