// Writes CTranslate2's n-best lists of lines of tokens, for comparison: ct2_n_best DIRECTORY BEAM PENALTY [PATIENCE] < lines
// A line for each hypothesis: number ||| tokens ||| ||| score, as many as the beam is wide. Built by ct2_n_best.sh.
#include <ctranslate2/translator.h>

#include <cstdio>
#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: ct2_n_best DIRECTORY BEAM PENALTY [PATIENCE]\n"), 2;
  ctranslate2::models::ModelLoader loader(argv[1]);
  loader.compute_type = ctranslate2::ComputeType::FLOAT32;
  ctranslate2::Translator translator(loader, {});
  ctranslate2::TranslationOptions options;
  options.beam_size = options.num_hypotheses = static_cast<size_t>(std::stoi(argv[2]));
  options.length_penalty = std::stof(argv[3]);
  options.patience = argc > 4 ? std::stof(argv[4]) : 1;
  options.return_scores = true;
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  const auto results = translator.translate_batch(lines, options, 32);
  for (size_t i = 0; i < results.size(); ++i)
    for (size_t k = 0; k < results[i].hypotheses.size(); ++k) {
      std::printf("%zu |||", i);
      for (const std::string& token : results[i].hypotheses[k]) std::printf(" %s", token.c_str());
      std::printf(" ||| ||| %.6f\n", results[i].scores[k]);
    }
}
