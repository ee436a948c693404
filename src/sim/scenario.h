// What a simulated cluster is made of and what fails in it: plain numbers, read from YAML. README.md beside it explains each of
// them and the equation it enters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace starling {

struct LinkModel {
  double latency_us = -1;        // -1 in any of the three: the preset's value
  double bandwidth_gbit_s = -1;  // of one direction
  double message_us = -1;        // of the sender's communication thread, before a message enters the link
};

struct NetworkModel {
  std::string preset = "10gbe";
  std::string gpu = "none";         // what each rank computes on; then NVLink within a node, and one network card per rank
  LinkModel inter, intra;           // between nodes, within one
  int64_t ranks_per_node = 1;       // ranks 0 .. ranks_per_node-1 are node 0, and so on
  int64_t cards_per_node = 0;       // network cards, each shared by ranks_per_node / cards_per_node ranks in order; 0: one, or one per GPU
  int64_t eager_bytes = 64 * 1024;  // longer messages start only once their receiver is ready
};
inline const std::vector<std::string> kNetworks{"1gbe",       "10gbe",          "25gbe",          "100gbe",
                                                "infiniband", "infiniband-hdr", "infiniband-ndr", "loopback"};
inline const std::vector<std::string> kGpus{"none", "a100", "h100", "h200"};
// Returns the network of one of kNetworks, for ranks on CPUs; throws ConfigError for another name.
NetworkModel network_preset(const std::string& name);
// Returns the model with everything filled in from its preset and its GPUs.
NetworkModel resolved(const NetworkModel& network);

// Rates of one rank, measured once and then fixed; 0 = takes no time.
struct ComputeModel {
  double forward_gflops = 100, backward_gflops = 100;
  double update_gb_s = 5, memory_gb_s = 10;
  double piece_us = 5;        // fixed cost of each piece of computing
  double weights_gb_s = -1;   // for what forward and backward passes move; -1: memory_gb_s
  double coding_gb_s = -1;    // for compressing gradients; -1: memory_gb_s
  double alone_speed = 1;     // relative, of a rank that computes while no other one of its node does
  double exchange_slows = 0;  // of the time in which its communication thread works, what a rank that computes meanwhile takes longer
};

// The assumed rates of one GPU of kGpus except "none" (docs/explanation/simulator.md), and its memory in GiB; ConfigError for another name.
ComputeModel gpu_rates(const std::string& name);
double gpu_memory_gib(const std::string& name);

struct Straggler {
  int rank = 0;
  double from_s = 0, until_s = 1e9;
  double factor = 2;  // computing takes this many times as long
};
struct LinkFault {
  int node = 0;
  double from_s = 0, until_s = 1e9;
  double factor = 0.1;  // the bandwidth of the node's network card is multiplied by it, both directions; 0: nothing passes
};
// What a network does to messages between nodes for a while, each with this probability. Connections repair it, as TCP's do: every message
// arrives once, and whole, but late.
struct MessageFault {
  double from_s = 0, until_s = 1e9;
  double lost = 0, retry_ms = 200;    // sent again after retry_ms, and after twice as long each time
  double delayed = 0, delay_ms = 10;  // arrives up to delay_ms later, evenly distributed, and may be overtaken
  double doubled = 0;                 // takes the network's time twice
};
struct Crash {
  int rank = 0;
  double at_s = 0;
};

struct Scenario {
  int ranks = 2;
  NetworkModel network;
  ComputeModel compute;
  std::vector<double> speeds;  // relative, by rank; empty = all 1. Not in files: a straggler without times says the same
  double jitter = 0;           // relative standard deviation of computing times
  double drift = 0;            // relative standard deviation of the machine's speed while it was measured: how sure predictions are
  double jitter_ms = 0;        // how long a rank stays as slow or fast as it is; 0: for one piece of computing
  std::vector<Straggler> stragglers;
  std::vector<LinkFault> link_faults;
  std::vector<MessageFault> message_faults;
  std::vector<Crash> crashes;
  uint64_t seed = 1;
  bool modelled_collectives = false;
  bool timing_only = false;
  bool hash_payloads = false;
  int threads = 0;
};

template <class Visitor, class Fault>
void visit_interval(Visitor& v, Fault& f) {
  v.field("from-s", f.from_s, "virtual seconds", 0.0, 1e9);
  v.field("until-s", f.until_s, "virtual seconds", 0.0, 1e9);
}
template <class Visitor>
void visit(Visitor& v, Straggler& s) {
  v.field("rank", s.rank, "the slow rank", 0, 1000000);
  visit_interval(v, s);
  v.field("factor", s.factor, "its computing takes this many times as long", 0.01, 1e6);
}
template <class Visitor>
void visit(Visitor& v, LinkFault& f) {
  v.field("node", f.node, "the node whose network card is slow", 0, 1000000);
  visit_interval(v, f);
  v.field("factor", f.factor, "its bandwidth is multiplied by this; 0 = nothing passes", 0.0, 1.0);
}
template <class Visitor>
void visit(Visitor& v, MessageFault& f) {
  visit_interval(v, f);
  v.field("lost", f.lost, "probability that a message between nodes is lost each time it is sent", 0.0, 0.9);
  v.field("retry-ms", f.retry_ms, "a lost message is sent again after so long, then after twice as long each time", 0.001, 1e6);
  v.field("delayed", f.delayed, "probability that a message between nodes is delayed", 0.0, 1.0);
  v.field("delay-ms", f.delay_ms, "by up to so long, evenly distributed", 0.0, 1e6);
  v.field("doubled", f.doubled, "probability that the network carries a message twice", 0.0, 1.0);
}
template <class Visitor>
void visit(Visitor& v, Crash& c) {
  v.field("rank", c.rank, "the rank that stops", 0, 1000000);
  v.field("at-s", c.at_s, "virtual seconds", 0.0, 1e9);
}
template <class Visitor>
void visit(Visitor& v, Scenario& s) {
  NetworkModel& n = s.network;
  ComputeModel& c = s.compute;
  v.field("ranks", s.ranks, "ranks of the simulated run: its workers, and its servers where they have ranks of their own", 1, 65536);
  v.field("ranks-per-node", n.ranks_per_node, "ranks that share a machine and its network card", 1, 65536);
  v.choice("network", n.preset, kNetworks, "between nodes: TCP over Ethernet, InfiniBand EDR, HDR or NDR, or one machine's loopback");
  v.choice("gpu", n.gpu, kGpus, "what a rank computes on; its assumed rates, memory and links apply unless others are given");
  v.field("network-cards", n.cards_per_node,
          "network cards of a node, each for an equal part of its ranks; 0 = one, or one per rank with GPUs", 0, 65536);
  v.field("latency-us", n.inter.latency_us, "between nodes, one way, microseconds; -1 = as the network says", -1.0, 1e9);
  v.field("bandwidth-gbit-s", n.inter.bandwidth_gbit_s, "between nodes, each direction; -1 = as the network says", -1.0, 1e6);
  v.field("message-us", n.inter.message_us, "sender's cost of a message to another node, microseconds; -1 = as the network says", -1.0,
          1e9);
  v.field("intra-latency-us", n.intra.latency_us, "within a node, microseconds; -1 = as the network says", -1.0, 1e9);
  v.field("intra-bandwidth-gbit-s", n.intra.bandwidth_gbit_s, "within a node, of one rank; -1 = as the network says", -1.0, 1e6);
  v.field("intra-message-us", n.intra.message_us, "sender's cost of a message within a node; -1 = as the network says", -1.0, 1e9);
  v.field("eager-bytes", n.eager_bytes, "longer messages start only when the receiver is ready", 0, int64_t{1} << 40);
  v.field("forward-gflops", c.forward_gflops, "rate of forward passes of one rank; 0 = no time", 0.0, 1e9);
  v.field("backward-gflops", c.backward_gflops, "rate of backward passes of one rank; 0 = no time", 0.0, 1e9);
  v.field("update-gb-s", c.update_gb_s, "memory rate of optimizer updates of one rank; 0 = no time", 0.0, 1e9);
  v.field("memory-gb-s", c.memory_gb_s, "memory rate of copies and of adding in collectives; 0 = no time", 0.0, 1e9);
  v.field("weights-gb-s", c.weights_gb_s,
          "memory rate of weights that a pass reads and of gradients that it adds to; 0 = no time, -1 = memory-gb-s", -1.0, 1e9);
  v.field("coding-gb-s", c.coding_gb_s, "memory rate of compressing gradients; 0 = no time, -1 = memory-gb-s", -1.0, 1e9);
  v.field("alone-speed", c.alone_speed, "how many times as fast a rank computes while the others of its node wait, or if there are none",
          0.1, 100.0);
  v.field("exchange-slows", c.exchange_slows,
          "how much of its passes' time a rank loses per second of its communication thread's work: 0 with idle cores, 1 and more without",
          0.0, 10.0);
  v.field("piece-us", c.piece_us, "fixed time of each piece of computing, microseconds", 0.0, 1e9);
  v.field("jitter", s.jitter, "relative standard deviation of computing times", 0.0, 2.0);
  v.field("jitter-ms", s.jitter_ms, "how long a rank stays as slow or fast as it is; 0 = for one piece of computing", 0.0, 1e6);
  v.field("drift", s.drift, "how much the machine's speed varied while it was measured, relative: how sure times are", 0.0, 2.0);
  v.records("stragglers", s.stragglers, "ranks that compute slowly for a while");
  v.records("link-faults", s.link_faults, "network cards that are slow for a while");
  v.records("message-faults", s.message_faults, "messages between nodes that are lost and sent again, late, or carried twice");
  v.records("crashes", s.crashes, "ranks that stop for good");
  v.field("seed", s.seed, "of the jitter and of message faults");
  v.field("modelled-collectives", s.modelled_collectives,
          "collectives take the time of a formula instead of being sent message by message");
  v.field("timing-only", s.timing_only, "nothing is computed or sent, only timed");
  v.field("hash-payloads", s.hash_payloads, "the trace hash covers the contents of messages too");
  v.field("threads", s.threads, "ranks computed at the same time; 0 = one per core; changes no result", 0, 4096);
}

}  // namespace starling
