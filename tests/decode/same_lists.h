// n-best lists of a card beside those of the processor.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "decode/beam_search.h"

namespace starling {

using NBestLists = std::vector<std::vector<Hypothesis>>;

// What differs, in words; empty: nothing. With near_ties, as on a real card, whose sums have other orders, hypotheses whose scores are
// equal but for rounding may change places: in up to an eighth of the places the tokens may differ, where the scores do not.
inline std::vector<std::string> differences(const NBestLists& card, const NBestLists& processor, bool near_ties) {
  const double tolerance = near_ties ? 5e-5 : 1e-5;
  if (card.size() != processor.size()) return {fmt::format("{} sentences, not {}", card.size(), processor.size())};
  std::vector<std::string> wrong, turned;
  size_t places = 0;
  for (size_t i = 0; i < card.size(); ++i) {
    if (card[i].size() != processor[i].size()) {
      wrong.push_back(fmt::format("sentence {}: {} hypotheses, not {}", i, card[i].size(), processor[i].size()));
      continue;
    }
    for (size_t n = 0; n < card[i].size(); ++n, ++places) {
      const Hypothesis &a = card[i][n], &b = processor[i][n];
      const std::string where = fmt::format("sentence {} hypothesis {}: ", i, n);
      if (!(std::abs(a.score - b.score) <= tolerance * std::abs(b.score)))
        wrong.push_back(fmt::format("{}score {:.9g}, not {:.9g}", where, a.score, b.score));
      if (a.tokens != b.tokens)
        turned.push_back(fmt::format("{}tokens {}, not {}", where, fmt::join(a.tokens, " "), fmt::join(b.tokens, " ")));
      else if (a.alignment != b.alignment)
        wrong.push_back(where + "another alignment");
    }
  }
  if (turned.size() > (near_ties ? places / 8 : 0)) wrong.insert(wrong.end(), turned.begin(), turned.end());
  return wrong;
}

}  // namespace starling
