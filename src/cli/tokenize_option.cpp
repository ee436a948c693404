#include "cli/tokenize_option.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"

namespace starling {

void add_tokenize_option(CLI::App& verb, std::string& name) {
  const auto known = [](const std::string& value) -> std::string {
    try {
      check_tokenizer_name(value, "the tokenizer");
      return "";
    } catch (const ConfigError& e) {
      return e.what();
    }
  };
  verb.add_option("--tokenize", name,
                  "Tokenizer of BLEU and GLEU: 13a, intl, char, zh, ja-mecab, none (text that is tokenized), or spm:FILE (a SentencePiece "
                  "model); auto: by the references, 13a where words have spaces between them")
      ->check(CLI::Validator(known, ""))
      ->capture_default_str();
}

void tell(const TokenizerChoice& choice) {
  const bool expected = choice.warning.empty() && choice.tokenizer.name() == "13a";
  if (!expected && !choice.notice().empty()) fmt::print(stderr, "starling: {}\n", choice.notice());
}

}  // namespace starling
