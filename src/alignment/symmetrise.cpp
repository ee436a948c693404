#include "alignment/symmetrise.h"

#include <algorithm>
#include <set>
#include <vector>

namespace starling {
namespace {

using Link = std::pair<int32_t, int32_t>;

// Links that have been accepted, and the words that have one.
class Accepted {
 public:
  void add(const Link& link) {
    links.insert(link);
    sources_.insert(link.first);
    targets_.insert(link.second);
  }
  bool has_neighbour(const Link& link) const {
    for (int32_t ds = -1; ds <= 1; ++ds)
      for (int32_t dt = -1; dt <= 1; ++dt)
        if ((ds != 0 || dt != 0) && links.contains({link.first + ds, link.second + dt})) return true;
    return false;
  }
  bool source_is_free(const Link& link) const { return !sources_.contains(link.first); }
  bool target_is_free(const Link& link) const { return !targets_.contains(link.second); }
  std::set<Link> links;

 private:
  std::set<int32_t> sources_, targets_;
};

}  // namespace

Links symmetrised(const Links& forward, const Links& reverse, Symmetrisation how) {
  if (how == Symmetrisation::forward) return forward;
  if (how == Symmetrisation::reverse) return reverse;
  const std::set<Link> f(forward.begin(), forward.end()), r(reverse.begin(), reverse.end());
  std::vector<Link> both, either;
  std::set_intersection(f.begin(), f.end(), r.begin(), r.end(), std::back_inserter(both));
  std::set_union(f.begin(), f.end(), r.begin(), r.end(), std::back_inserter(either));
  if (how == Symmetrisation::intersect) return both;
  if (how == Symmetrisation::unite) return either;
  Accepted accepted;
  for (const Link& link : both) accepted.add(link);
  for (bool added = true; added;) {
    added = false;
    for (const Link& link : either) {
      if (accepted.links.contains(link) || !accepted.has_neighbour(link)) continue;
      if (!accepted.source_is_free(link) && !accepted.target_is_free(link)) continue;
      accepted.add(link);
      added = true;
    }
  }
  if (how != Symmetrisation::grow_diag)
    for (const std::set<Link>* side : {&f, &r})
      for (const Link& link : *side) {
        const bool source = accepted.source_is_free(link), target = accepted.target_is_free(link);
        if (how == Symmetrisation::grow_diag_final_and ? source && target : source || target) accepted.add(link);
      }
  return {accepted.links.begin(), accepted.links.end()};
}

}  // namespace starling
