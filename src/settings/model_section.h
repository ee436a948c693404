// The section `model` of a configuration: a preset, then the keys that override it, and the programs that the model must be fit for.
#pragma once

#include "models/portability.h"

namespace starling {

struct ModelSection {
  ModelConfig& model;
  std::vector<std::string>& programs;
};
template <class Visitor>
void visit(Visitor& v, ModelSection& s) {
  v.field("preset", s.model.preset,
          "dimensions to start from: transformer-base, -big, -small, -tiny, gnmt, gnmt-4 or gnmt-small; the keys below override it");
  constexpr auto programs = words(Program());
  v.choice(
      "for", s.programs, {programs.begin(), programs.end()},
      "programs for which 'starling export' must be able to write the model: sets the keys that they need, and refuses values that they "
      "do not support (docs/guides/import.md)");
  visit(v, s.model);
}

}  // namespace starling
