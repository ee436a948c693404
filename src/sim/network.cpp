// Messages. A message waits for the sender's communication thread (message_us), then, if it is long, until the receiver is ready; then it
// is serialised out of the sender's port, travels for the latency, and is serialised into the receiver's port. Between nodes the ports are
// the nodes' network cards, of which each serves some ranks; within a node each rank has one of its own for each direction.
#include <cstring>

#include "base/random.h"
#include "sim/group.h"

namespace starling::sim {

size_t Engine::ChannelHash::operator()(const Channel& c) const {
  uint64_t h = c.group_and_kind * 0x9E3779B97F4A7C15u + c.number;
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9u + (static_cast<uint64_t>(c.from) << 32 | static_cast<uint32_t>(c.to));
  h = (h ^ (h >> 32)) * 0x94D049BB133111EBu;
  return h ^ (h >> 29);
}

int Engine::port(int rank, int other) const {
  return cluster_.node_of(rank) == cluster_.node_of(other) ? cluster_.cards() + rank : cluster_.card_of(rank);
}
int Engine::out_port(const Message& m) const { return port(m.from, m.to); }
int Engine::in_port(const Message& m) const { return port(m.to, m.from); }

// Returns when a port that starts at `start` has finished what takes it `ns` undisturbed.
Time Engine::transferred(int port, Time start, double ns) const {
  return port < cluster_.cards() ? finish(start, ns, cluster_.slow(port)) : start + whole_ns(ns);
}

// Returns the first message that the other side has posted, or a new one.
Message* Engine::message_for(const Channel& channel, bool send, int64_t bytes) {
  Queue& queue = channels_[channel];
  if (queue.first && queue.sends != send) {
    Message* m = queue.first;
    CHECK(m->bytes == bytes, "rank {} {} {} bytes {} rank {}, which {} {}", send ? m->from : m->to, send ? "sends" : "expects", bytes,
          send ? "to" : "from", send ? m->to : m->from, send ? "expects" : "sends", m->bytes);
    queue.first = m->next;
    if (!queue.first) channels_.erase(channel);
    m->next = nullptr;
    return m;
  }
  Message* m = free_messages_;
  if (m)
    free_messages_ = m->next;
  else
    m = &messages_store_.emplace_back();
  *m = Message{};
  m->from = channel.from;
  m->to = channel.to;
  m->bytes = bytes;
  m->eager = cluster_.eager(bytes);
  queue.sends = send;
  (queue.first ? queue.last->next : queue.first) = m;
  queue.last = m;
  return m;
}

void Engine::recycle(Message& m) {
  m.sender = m.receiver = nullptr;
  m.copy = nullptr;
  m.next = free_messages_;
  free_messages_ = &m;
}

void Engine::post_send(const Channel& channel, std::shared_ptr<SimOperation> op, const std::byte* data, int64_t bytes, const char* label) {
  Message& m = *message_for(channel, true, bytes);
  m.sender = std::move(op);
  m.source = data;
  m.label = label;
  Rank& r = rank(m.from);
  r.report.traffic.bytes_sent += bytes;
  m.number = ++r.report.traffic.messages_sent;
  ++messages_;
  const LinkModel& link = cluster_.link(m.from, m.to);
  r.software_free = m.ready = std::max(r.software_free, now_) + us(link.message_us);
  take_from_computing(r, 1e3 * link.message_us);
  if (m.eager) {
    if (data && m.receiver && m.target && !rank(m.to).crashed) {
      std::memcpy(m.target, data, static_cast<size_t>(bytes));
    } else if (data && !m.receiver) {
      m.copy.reset(new std::byte[static_cast<size_t>(bytes)]);
      std::memcpy(m.copy.get(), data, static_cast<size_t>(bytes));
    }
    push(m.ready, enter_link, m.from, &m);
  } else if (m.receiver) {
    push(m.ready + us(link.latency_us), enter_link, m.from, &m);
  }
}

void Engine::post_receive(const Channel& channel, std::shared_ptr<SimOperation> op, std::byte* data, int64_t bytes) {
  Message& m = *message_for(channel, false, bytes);
  m.receiver = std::move(op);
  m.target = data;
  if (m.ready < 0) return;
  if (!m.eager) {
    push(std::max(m.ready, now_) + us(cluster_.link(m.from, m.to).latency_us), enter_link, m.from, &m);
  } else {
    if (m.copy && data) std::memcpy(data, m.copy.get(), static_cast<size_t>(bytes));
    m.copy = nullptr;
    if (m.arrived) received(m);
  }
}

void Engine::handle(Event& event) {
  switch (event.kind) {
    case enter_link:
      return start_link(*event.message);
    case left:
      return sent(*event.message);
    case enter_receiver: {
      Message& m = *event.message;
      const LinkModel& link = cluster_.link(m.from, m.to);
      Time& free = in_free_[static_cast<size_t>(in_port(m))];
      const double ns = transfer_ns(link, m.bytes);
      const Time whole = free = std::max(transferred(in_port(m), std::max(now_, free), ns), m.tx_ended + us(link.latency_us));
      if (m.doubled) free = transferred(in_port(m), free, ns);
      return push(whole, arrived, m.to, &m);
    }
    case arrived: {
      Message& m = *event.message;
      m.arrived = true;
      hash(arrived, m.to, m.from, m.bytes);
      if (m.receiver) received(m);
      return;
    }
    case arithmetic_done:
      if (!rank(event.rank).crashed) event.op->arithmetic_ended();
      return;
    case complete_op:
      if (!rank(event.rank).crashed) event.op->completed();
      return;
    case wake:
      break;
  }
  CHECK(false, "event of kind {}", static_cast<int>(event.kind));
}

void Engine::start_link(Message& m) {
  if (rank(m.from).crashed) return;  // never sent; its memory may be gone
  Time& free = out_free_[static_cast<size_t>(out_port(m))];
  m.tx_began = std::max(now_, free);
  m.tx_ended = free = transferred(out_port(m), m.tx_began, transfer_ns(cluster_.link(m.from, m.to), m.bytes));
  hash(enter_link, m.from, m.to, m.bytes);
  const Time delay = out_port(m) < cluster_.cards() ? disturbed(m) : 0;
  if (delay < 0) return push(m.tx_ended - delay, enter_link, m.from, &m);
  if (m.doubled) free = transferred(out_port(m), free, transfer_ns(cluster_.link(m.from, m.to), m.bytes));
  take_from_computing(rank(m.from), copying_ns(m) / 2);
  // The sender may change its memory as soon as the message has left, so it is copied now; the receiver does not read it before it arrives.
  if (!m.eager && m.source && m.target && !rank(m.to).crashed) std::memcpy(m.target, m.source, static_cast<size_t>(m.bytes));
  push(m.tx_ended, left, m.from, &m);
  push(m.tx_began + us(cluster_.link(m.from, m.to).latency_us) + delay, enter_receiver, m.to, &m);
}

// Returns how much later a message arrives that leaves now; below 0: it is lost, and sent again so long after it has left.
Time Engine::disturbed(Message& m) {
  Time delay = 0;
  for (const MessageFault& fault : scenario_.message_faults) {
    if (m.tx_began < at_seconds(fault.from_s) || m.tx_began >= at_seconds(fault.until_s)) continue;
    if (chance(m, fault, 0) < fault.lost) {
      ++lost_;
      return -us(1e3 * fault.retry_ms * static_cast<double>(int64_t{1} << std::min(m.tries++, 20)));
    }
    if (chance(m, fault, 1) < fault.delayed) ++delayed_, delay += us(1e3 * fault.delay_ms * chance(m, fault, 2));
    if (!m.doubled && chance(m, fault, 3) < fault.doubled) ++doubled_, m.doubled = true;
  }
  return delay;
}

// Returns a number in [0, 1), a function of the seed, the message, the fault and what is asked.
double Engine::chance(const Message& m, const MessageFault& fault, int what) const {
  const auto asked = static_cast<uint64_t>((&fault - scenario_.message_faults.data()) << 32 | m.tries << 2 | what);
  return Random(scenario_.seed + 0x9E3779B97F4A7C15u * (asked + 1), static_cast<uint64_t>(m.from) << 40 | static_cast<uint64_t>(m.number))
      .uniform();
}

// Returns how long a communication thread works for a message that it sends and one like it that it receives: on a link that is slower than
// the memory it mostly waits.
double Engine::copying_ns(const Message& m) const {
  return std::min(transfer_ns(cluster_.link(m.from, m.to), m.bytes), transfer_ns(cluster_.network().intra, m.bytes));
}

void Engine::sent(Message& m) {
  if (m.label) trace.add(m.from, Trace::network, m.label, m.tx_began, now_, m.bytes);
  const auto op = std::move(m.sender);
  if (!rank(m.from).crashed) op->message_ended();
}

void Engine::received(Message& m) {
  if (scenario_.hash_payloads && m.target) hash_payload(m.target, m.bytes);
  rank(m.to).report.traffic.bytes_received += m.bytes;
  take_from_computing(rank(m.to), copying_ns(m) / 2);
  const auto op = std::move(m.receiver);
  recycle(m);
  if (!rank(op->rank).crashed) op->message_ended();
}

void Engine::arithmetic(SimOperation& op, double ns) {
  Rank& r = rank(op.rank);
  r.software_free = std::max(r.software_free, now_) + whole_ns(ns);
  take_from_computing(r, ns);
  push(r.software_free, arithmetic_done, op.rank, nullptr, op.shared_from_this());
}

void Engine::complete_later(const std::shared_ptr<SimOperation>& op, Time at) { push(at, complete_op, op->rank, nullptr, op); }

Time Engine::network_free(const std::vector<int>& cards) const {
  Time free = 0;
  for (const int card : cards) {
    const auto c = static_cast<size_t>(card);
    free = std::max({free, collective_free_[c], out_free_[c], in_free_[c]});
  }
  return free;
}

void Engine::occupy_network(const std::vector<int>& cards, Time until) {
  for (const int card : cards) collective_free_[static_cast<size_t>(card)] = until;
}

}  // namespace starling::sim
