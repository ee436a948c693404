// Collectives message by message: a schedule advances round by round as its messages end, whatever its rank does meanwhile.
#include <cstring>

#include "sim/group.h"

namespace starling::sim {

GroupOperation::GroupOperation(Engine& engine, std::shared_ptr<Group> g, int local_rank, const char* name_of_it, Tensor tensor)
    : SimOperation(engine, g->ranks[static_cast<size_t>(local_rank)]),
      group(std::move(g)),
      local(local_rank),
      what(name_of_it),
      number(group->next[static_cast<size_t>(local_rank)]++),
      x(std::move(tensor)),
      began(engine.now()) {}

Meeting& GroupOperation::join() {
  Meeting& meeting = group->meetings[number];
  if (meeting.started == 0) {
    meeting.what = what;
    meeting.count = x.count();
    meeting.members.resize(group->ranks.size());
  }
  CHECK(std::strcmp(meeting.what, what) == 0, "rank {} starts {} where other ranks have started {} (collective {} of the group)", rank,
        what, meeting.what, number);
  ++meeting.started;
  meeting.members[static_cast<size_t>(local)] = std::static_pointer_cast<GroupOperation>(shared_from_this());
  return meeting;
}

void GroupOperation::completed() {
  const auto keep = shared_from_this();
  engine.trace.add(rank, Trace::network, what, began, engine.now(), bytes);
  if (modelled_ns > 0) engine.take_from_computing(engine.rank(rank), modelled_ns);
  x = scratch = Tensor();
  schedule = {};
  engine.complete(*this);
  const auto meeting = group->meetings.find(number);
  if (++meeting->second.ended == static_cast<int>(group->ranks.size())) group->meetings.erase(meeting);
}

std::string GroupOperation::late() const {
  const auto meeting = group->meetings.find(number);
  if (meeting == group->meetings.end()) return "it is over";
  std::string text;
  int named = 0, late_ranks = 0;
  const auto add = [&](int local_rank, const char* has_not) {
    if (++late_ranks > 4) return;
    text += fmt::format("{}{}", named++ ? ", " : "", engine.lateness(group->ranks[static_cast<size_t>(local_rank)], has_not));
  };
  const auto& members = meeting->second.members;
  for (size_t r = 0; r < members.size(); ++r)
    if (!members[r]) add(static_cast<int>(r), "has not started it");
  if (late_ranks == 0)
    for (size_t r = 0; r < members.size(); ++r)
      if (!members[r]->complete && engine.rank(group->ranks[r]).crashed) add(static_cast<int>(r), "has not finished it");
  if (late_ranks > named) text += fmt::format(", and {} more ranks", late_ranks - named);
  return late_ranks > 0 ? text : "every rank has started it, the network is slow";
}

std::byte* GroupOperation::memory(Area area, int64_t offset) const {
  const Tensor& t = area == Area::data ? x : scratch;
  return t.has_elements() ? t.raw() + offset : nullptr;
}

void GroupOperation::start_messages() {
  bytes = schedule.bytes_sent();
  if (x.has_elements()) scratch = Tensor({schedule.scratch_bytes}, DType::i8);
  open_ = 0;
  advance();
}

// Returns true if it takes time; then arithmetic_ended() will be called.
bool GroupOperation::start_arithmetic(const std::vector<Schedule::Local>& locals) {
  if (locals.empty()) return false;
  if (x.has_elements())
    for (const Schedule::Local& l : locals) apply(l, x.dtype(), x.raw(), scratch.raw());
  const double ns = engine.cluster().arithmetic_ns(rank, locals, x.dtype());
  if (ns <= 0) return false;
  open_ = 1;
  engine.arithmetic(*this, ns);
  return true;
}

void GroupOperation::arithmetic_ended() {
  open_ = 0;
  advance();
}

void GroupOperation::message_ended() {
  if (--open_ == 0) advance();
}

// Continues after the arithmetic before or after a round's messages, or after the messages.
void GroupOperation::advance() {
  while (round_ < schedule.rounds.size()) {
    Schedule::Round& round = schedule.rounds[round_];
    switch (phase_) {
      case before:
        phase_ = messages;
        if (start_arithmetic(round.before)) return;
        [[fallthrough]];
      case messages:
        phase_ = after;
        open_ = 1;  // so that messages which end at once do not lead back here
        post();
        if (--open_ > 0) return;
        [[fallthrough]];
      case after:
        phase_ = before;
        ++round_;
        if (start_arithmetic(round.after)) return;
    }
  }
  completed();
}

void GroupOperation::post() {
  const Schedule::Round& round = schedule.rounds[round_];
  const auto global = [&](int r) { return group->ranks[static_cast<size_t>(r)]; };
  const uint64_t kind = static_cast<uint64_t>(group->id) << 1 | 1;
  for (const auto& send : round.sends) open_ += send.bytes > 0;
  for (const auto& receive : round.receives) open_ += receive.bytes > 0;
  // Receives first: a message that finds its receive posted goes straight to its place.
  for (const auto& receive : round.receives)
    if (receive.bytes > 0)
      engine.post_receive({kind, number, global(receive.from), rank}, shared_from_this(), memory(receive.area, receive.offset),
                          receive.bytes);
  for (const auto& send : round.sends)
    if (send.bytes > 0)
      engine.post_send({kind, number, rank, global(send.to)}, shared_from_this(), memory(send.area, send.offset), send.bytes, nullptr);
}

}  // namespace starling::sim
