// Translates lines of tokens by CTranslate2 and scores the translations, in f32: ct2_relative DIRECTORY < lines
// A line for each: tokens, a tab, the log-probability with the end of sentence. Built by ct2_relative.sh.
#include <ctranslate2/translator.h>

#include <cstdio>
#include <iostream>
#include <numeric>
#include <sstream>

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: ct2_relative DIRECTORY < lines\n"), 2;
  ctranslate2::models::ModelLoader loader(argv[1]);
  loader.compute_type = ctranslate2::ComputeType::FLOAT32;
  ctranslate2::Translator translator(loader, {});
  ctranslate2::TranslationOptions options;
  options.beam_size = 4;
  options.length_penalty = 0;
  std::vector<std::vector<std::string>> lines, targets;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  for (const auto& result : translator.translate_batch(lines, options, 32)) targets.push_back(result.hypotheses[0]);
  const auto scores = translator.score_batch(lines, targets, {}, 32);
  for (size_t i = 0; i < targets.size(); ++i) {
    for (size_t k = 0; k < targets[i].size(); ++k) std::printf("%s%s", k ? " " : "", targets[i][k].c_str());
    const std::vector<float>& tokens = scores[i].tokens_score;
    std::printf("\t%.6f\n", std::accumulate(tokens.begin(), tokens.end(), 0.0));
  }
}
