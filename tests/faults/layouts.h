// The runs that faults are tried on: small ones, one for each way in which ranks train together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "settings/config.h"

namespace starling {

struct Layout {
  enum Kind : uint8_t {
    synchronous,  // every update is that of one worker with the whole batch
    of_its_own,   // the model depends on the number of ranks: compressed gradients, replicas that differ
    by_time,      // the model depends on who is faster
  };
  std::string name;
  int ranks = 2;
  Kind kind = synchronous;
  std::function<void(Config&)> set;
  int multiple = 1;  // other numbers of ranks that can continue it are multiples of this
};

const std::vector<Layout>& layouts();

}  // namespace starling
