// Where a model of ours can go: what other programs' engines need of its configuration, in one table. `starling export` refuses by it,
// `model.for` sets and checks keys by it before training.
#pragma once

#include <string>
#include <vector>

#include "models/config.h"

namespace starling {

enum class Program : uint8_t { ctranslate2, argos, marian, bergamot, huggingface };
constexpr auto words(Program) { return std::array{"ctranslate2", "argos", "marian", "bergamot", "huggingface"}; }
// As messages call it.
const char* name_of(Program program);

// What programs need to know of a model besides its configuration. The initial values are those of vocabularies that are trained here.
struct PortableVocabulary {
  bool joint = true;
  bool same_pieces = true;     // on both sides
  bool whole = true;           // every piece of the SentencePiece models has a number
  bool sentence_piece = true;  // SentencePiece splits text, not Moses and subword-nmt
  bool one_splitter = true;    // one SentencePiece model for both sides, or the same codes of subword-nmt
  int32_t begin = 1;           // of the target
  int32_t source_padding = -1, target_padding = -1;
  int64_t target_size = 1 << 30;
};

// A key whose value a program cannot have.
struct Obstacle {
  std::string key, value;  // "model.norm", "pre"
  std::string set;         // the value that it should have; "" if no value of this key helps
  std::string needed;      // the values that it may have
  std::string why;         // "" if there is no more to say
  // "model.norm is pre, and Marian needs post: its decoder ..."
  std::string text(Program program) const;
};

struct Portability {
  bool integers = false;  // weights go there as 8-bit integers
  bool exact = false;     // numbers that hardly matter are the program's own too
};

// Returns what keeps a model from a program, in the order of the table.
std::vector<Obstacle> obstacles(Program program, const ModelConfig& model, const PortableVocabulary& vocabulary, Portability how = {});

// Returns one line about where a model can go and what it would take elsewhere. asked: the programs of model.for, as words.
std::string destinations_text(const ModelConfig& model, const PortableVocabulary& vocabulary, const std::vector<std::string>& asked);

}  // namespace starling
