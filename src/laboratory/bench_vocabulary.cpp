// The verb `starling bench vocabulary`.
#include "measure/bench_vocabulary.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "laboratory/verbs.h"

namespace starling {
namespace {

void say(const std::string& line) { std::cout << line << std::endl; }

void print(const std::vector<SampleRow>& rows) {
  std::cout << "different lines       MB   seconds   peak MiB   pieces   shared with the last   by use   tokens per line\n";
  for (const SampleRow& row : rows)
    std::cout << fmt::format("{:15} {:8.1f} {:9.1f} {:10} {:8} {:20.1f} % {:6.2f} % {:15.3f}\n", row.sampled,
                             static_cast<double>(row.sampled_bytes) / 1e6, row.seconds, row.peak_child_bytes >> 20, row.pieces,
                             100 * row.shared, 100 * row.shared_use, row.tokens_per_line);
}

}  // namespace

void add_bench_vocabulary(CLI::App& bench) {
  auto* vocabulary =
      bench.add_subcommand("vocabulary", "how pieces and lengths change with the size of the vocabulary's sample, on your text");
  auto v = std::make_shared<BenchVocabularyOptions>();
  vocabulary->add_option("--source", v->source, "text, plain or packed")->required();
  vocabulary->add_option("--target", v->target, "its other side")->required();
  vocabulary->add_option("--lines", v->lines, "different lines of the samples, ascending; compared with the last")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  vocabulary->add_option("--vocabulary", v->vocabulary, "joint pieces")->check(CLI::Range(16, 1'000'000))->capture_default_str();
  vocabulary->add_option("--type", v->type, "unigram or bpe")->check(CLI::IsMember({"unigram", "bpe"}))->capture_default_str();
  vocabulary->add_option("--seed", v->seed, "of the samples")->capture_default_str();
  vocabulary->callback([v] {
    std::sort(v->lines.begin(), v->lines.end());
    print(bench_vocabulary(*v, say));
  });
}

}  // namespace starling
