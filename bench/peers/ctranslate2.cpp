// Translates lines with CTranslate2, for comparison: ctranslate2 DIRECTORY SPM[,SPM] f32|int8 BEAM BATCH THREADS [PENALTY] < lines
// Text is split and joined by the SentencePiece models of source and target. THREADS translators of one thread each share the work, as
// Starling's do. The time of translating, without loading and splitting, goes to standard error. Built by ctranslate2.sh.
#include <ctranslate2/translator.h>
#include <sentencepiece_processor.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <stdexcept>

int main(int argc, char** argv) {
  if (argc < 7) return std::fprintf(stderr, "usage: ctranslate2 DIRECTORY SPM[,SPM] f32|int8 BEAM BATCH THREADS [PENALTY]\n"), 2;
  const std::string models = argv[2], type = argv[3];
  const size_t comma = models.find(',');
  sentencepiece::SentencePieceProcessor source, target;
  const auto load = [](sentencepiece::SentencePieceProcessor& to, const std::string& path) {
    if (!to.Load(path).ok()) throw std::runtime_error(path + " is no SentencePiece model");
  };
  load(source, models.substr(0, comma));
  load(target, comma == std::string::npos ? models : models.substr(comma + 1));

  ctranslate2::models::ModelLoader loader(argv[1]);
  loader.compute_type = type == "int8" ? ctranslate2::ComputeType::INT8 : ctranslate2::ComputeType::FLOAT32;
  loader.num_replicas_per_device = static_cast<size_t>(std::stoi(argv[6]));
  ctranslate2::ReplicaPoolConfig pool;
  pool.num_threads_per_replica = 1;
  ctranslate2::Translator translator(loader, pool);
  ctranslate2::TranslationOptions options;
  options.beam_size = static_cast<size_t>(std::stoi(argv[4]));
  options.length_penalty = argc > 7 ? std::stof(argv[7]) : 0;

  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(source.EncodeAsPieces(line));
  const auto translate = [&](const std::vector<std::vector<std::string>>& some) {
    return translator.translate_batch(some, options, static_cast<size_t>(std::stoi(argv[5])));
  };
  translate({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(lines.size(), 16))});  // warms up
  const auto start = std::chrono::steady_clock::now();
  const auto results = translate(lines);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  size_t tokens = 0;
  for (const auto& result : results) {
    std::string text;
    target.Decode(result.hypotheses[0], &text);
    tokens += result.hypotheses[0].size() + 1;
    std::cout << text << '\n';
  }
  std::fprintf(stderr, "%.3f s, %zu target tokens, %.0f tokens/s\n", seconds, tokens, static_cast<double>(tokens) / seconds);
}
