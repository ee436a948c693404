// The sentence templates: each draws phrases and clauses and lets the grammar render both languages, as a pair before finish(). The test
// checks over 200,000 sentences that English determines German.
#pragma once

#include "demo/clauses.h"

namespace starling::demo {

struct Template {
  std::string_view name;
  int weight;
  Pair (*make)(Draw&);
};

std::span<const Template> everyday_templates();   // everyday.cpp
std::span<const Template> statement_templates();  // statements.cpp
std::span<const Template> question_templates();   // questions.cpp
std::span<const Template> compound_templates();   // compound.cpp

inline Pair statement(const Clause& c) { return {english(c) + ".", german(c) + "."}; }

}  // namespace starling::demo
