#include "comm/nccl/card_lateness.h"

#include <algorithm>

#include "base/error.h"

namespace starling::STARLING_CUDA {

// The ranks of a group run the same operations in the same order, so counting them shows who is behind, and where: a host that has not
// begun the operation, a card that has not reached it, or, if all cards have reached it, the links between them.
std::string describe(const CardLateness& l) {
  const std::vector<int>& members = l.group.members;
  const auto of = [&](int r) -> const RankNews& { return l.news[static_cast<size_t>(r)]; };
  const auto counts = [&](int r) -> const CardProgress& { return of(r).card[l.group.place]; };
  const auto name = [&](int r) { return fmt::format("rank {} on {}", r, l.hosts[static_cast<size_t>(r)]); };
  // The late rank may itself be waiting for others.
  const auto elsewhere = [&](int r) {
    for (size_t place = 0; place < l.purposes.size(); ++place)
      if (place != l.group.place && !l.purposes[place].empty() && of(r).card[place].enqueued > of(r).card[place].completed)
        return fmt::format(", and has not finished its work in another group, {}", l.purposes[place]);
    return std::string();
  };
  const auto doing = [&](int r) {
    return (of(r).phase.empty() ? std::string("has not reported what it is doing")
                                : fmt::format("is in '{}' at update {}", of(r).phase, of(r).step)) +
           elsewhere(r);
  };
  const auto heard = [&](int r) { return r == l.self ? "" : fmt::format(", and was last heard of {:.1f} s ago", of(r).age_s); };
  const auto least = [&](int64_t CardProgress::*count) {
    return *std::min_element(members.begin(), members.end(), [&](int a, int b) { return counts(a).*count < counts(b).*count; });
  };
  const std::string text = fmt::format("{} of cards ({}) waited {:.1f} s; ", l.operation, l.group.purpose, l.waited_s);
  const std::string advice = "; raise strategy.deadline-seconds, or look at that rank's log";
  if (l.news.empty()) return text + "what the other ranks are doing is not known" + advice;
  const int host = least(&CardProgress::enqueued), card = least(&CardProgress::reached);
  if (counts(host).enqueued < l.number)
    return text + fmt::format("the host of {} has not begun it: it {}{}", name(host), doing(host), heard(host)) + advice;
  if (counts(card).reached < l.number)
    return text +
           fmt::format("the card of {} has not reached it: it is slow or hangs; its host {}{}", name(card), doing(card), heard(card)) +
           advice;
  std::vector<std::string> hosts;
  for (const int r : members) hosts.push_back(l.hosts[static_cast<size_t>(r)]);
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return text + fmt::format(
                    "all {} cards have reached it, so the links between them deliver nothing (on {}); look at them, and at NCCL's "
                    "messages with NCCL_DEBUG=WARN",
                    members.size(), fmt::join(hosts, ", "));
}

}  // namespace starling::STARLING_CUDA
