// Collectives of a group of ranks: which rank has started which, and how they run, message by message or as a whole.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/engine.h"

namespace starling::sim {

class GroupOperation;

// The n-th collective of a group, from its first start to its last end.
struct Meeting {
  const char* what = "";
  int64_t count = 0;  // elements of the first to start
  int started = 0, ended = 0;
  uint64_t variant = 0;                                  // if modelled: a hash that distinguishes it from others of its kind
  std::vector<std::shared_ptr<GroupOperation>> members;  // by rank of the group; null = not started
};

struct Group {
  int id = 0;
  std::vector<int> ranks;  // as numbered in the whole run
  std::vector<int> cards;  // their network cards, each once
  bool within_a_node = true;
  std::vector<uint64_t> next;  // by rank of the group: number of its next collective
  std::unordered_map<uint64_t, Meeting> meetings;
  std::unordered_map<uint64_t, std::shared_ptr<const CollectiveTiming>> timings;  // by a hash of everything they depend on
};

// One rank's part in a collective.
class GroupOperation : public SimOperation {
 public:
  GroupOperation(Engine& engine, std::shared_ptr<Group> group, int local, const char* what, Tensor x);
  std::string name() const override { return what; }
  std::string late() const override;
  bool needs(int rank) const override { return std::find(group->ranks.begin(), group->ranks.end(), rank) != group->ranks.end(); }
  // Joins the meeting; the other ranks' calls must be of the same kind.
  Meeting& join();
  // Ends the operation; the last one to do so ends the meeting.
  void completed() override;
  void start_messages();
  void message_ended() override;
  void arithmetic_ended() override;

  const std::shared_ptr<Group> group;
  const int local;
  const char* const what;
  const uint64_t number;
  Tensor x, scratch;
  Schedule schedule;
  Time began = 0;
  int64_t bytes = 0;                // sent
  double modelled_ns = 0;           // of the communication thread, if modelled
  int color = 0;                    // of a split
  std::shared_ptr<Group> subgroup;  // the result of a split

 private:
  enum Phase : uint8_t { before, messages, after };
  void advance();
  bool start_arithmetic(const std::vector<Schedule::Local>& locals);
  void post();
  std::byte* memory(Area area, int64_t offset) const;
  size_t round_ = 0, open_ = 0;
  Phase phase_ = before;
};

std::string host_name(int node);
World make_world(Engine& engine, int rank);

}  // namespace starling::sim
