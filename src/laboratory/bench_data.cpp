// The verbs `starling bench data` and `starling bench vocabulary`.
#include "measure/bench_data.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "laboratory/verbs.h"

namespace starling {
namespace {

void say(const std::string& line) { std::cout << line << std::endl; }

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

void print(const BenchDataResult& r) {
  const double lines = 2 * static_cast<double>(r.pairs - r.kept_pairs), prepared = lines / r.prepare_seconds;
  const auto took = [](double seconds) { return seconds > 0 ? fmt::format("{:.1f} s", seconds) : std::string("was there"); };
  std::cout << fmt::format("threads             {}\n", r.threads)
            << fmt::format("text                {} pairs of made-up sentences, {:.0f} MB, made in: {}\n", r.pairs,
                           static_cast<double>(r.bytes) / 1e6, took(r.make_seconds))
            << fmt::format("reading alone       {:.0f} lines/s on one core, {:.0f} on all (unpacked, checked)\n", r.read_lines,
                           r.read_lines_together)
            << fmt::format("vocabulary          {}\n", took(r.vocabulary_seconds))
            << fmt::format("SentencePiece alone {:.0f} lines/s on one core, from memory\n", r.encode_lines)
            << fmt::format("preparation         {:.0f} lines/s: {:.0f} pairs in {:.1f} s{}\n", prepared, lines / 2, r.prepare_seconds,
                           r.kept_pairs > 0 ? fmt::format(", {} more were there", r.kept_pairs) : "")
            << fmt::format("  by core           {:.0f} lines/s, {:.0f} % of SentencePiece alone\n", prepared / r.threads,
                           share(prepared / r.threads, r.encode_lines))
            << fmt::format("store               {:.0f} MB, verified and opened in {:.2f} s\n", static_cast<double>(r.store_bytes) / 1e6,
                           r.verify_seconds)
            << fmt::format("peak memory         {} MiB, vocabulary training {} MiB\n", r.peak_bytes >> 20, r.peak_child_bytes >> 20);
}

void print(const std::vector<SampleRow>& rows) {
  std::cout << "different lines       MB   seconds   peak MiB   pieces   shared with the last   by use   tokens per line\n";
  for (const SampleRow& row : rows)
    std::cout << fmt::format("{:15} {:8.1f} {:9.1f} {:10} {:8} {:20.1f} % {:6.2f} % {:15.3f}\n", row.sampled,
                             static_cast<double>(row.sampled_bytes) / 1e6, row.seconds, row.peak_child_bytes >> 20, row.pieces,
                             100 * row.shared, 100 * row.shared_use, row.tokens_per_line);
}

}  // namespace

void add_bench_data(CLI::App& bench) {
  auto* data = bench.add_subcommand(
      "data",
      "preparing training data beside SentencePiece alone, on parallel text of made-up words that it writes; not removed afterwards");
  auto d = std::make_shared<BenchDataOptions>();
  data->add_option("--output", d->output, "directory for text (270 bytes per pair), vocabulary and tokens (120); what is there is used")
      ->type_name("DIR")
      ->required();
  data->add_option("--pairs", d->pairs, "sentence pairs")->check(CLI::Range(1000, 1'000'000'000))->capture_default_str();
  data->add_option("--vocabulary", d->vocabulary, "joint pieces")->check(CLI::Range(1000, 1'000'000))->capture_default_str();
  data->add_option("--seed", d->seed, "which text")->capture_default_str();
  add_threads_option(*data, d->threads);
  data->callback([d] { print(bench_data(*d, say)); });

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
