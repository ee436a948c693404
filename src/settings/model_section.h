// The section `model` of a configuration: a preset, then the keys that override it.
#pragma once

#include "models/config.h"

namespace starling {

struct ModelSection {
  ModelConfig& model;
};
template <class Visitor>
void visit(Visitor& v, ModelSection& s) {
  v.field("preset", s.model.preset,
          "dimensions to start from: transformer-base, -big, -small, -tiny, gnmt, gnmt-4 or gnmt-small; the keys below override it");
  visit(v, s.model);
}

}  // namespace starling
