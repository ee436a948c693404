// What each rank is doing, known to every rank within about log2 N beats: at intervals a rank sends everything it knows to the ranks 2^k
// after and before it, with k rotating. So a rank that waits too long can say for which one.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace starling {

struct Heartbeat {
  int64_t count = 0;        // grows with every beat of its rank; 0 = nothing known yet
  int64_t step = 0;         // the update that the rank reported last
  int64_t collectives = 0;  // started on the communicator of all ranks
  int64_t operations = 0;   // started on any communicator
  CardCounts card;
  char phase[32] = {};
};

// Sends and receives heartbeats, in the communication thread.
class Heartbeats {
 public:
  struct Known {
    Heartbeat beat;
    int64_t heard_ns = 0;  // when the count last grew, on this rank's clock
  };
  void start(MPI_Comm comm);
  // Returns true if something has arrived; news() then has an entry for each rank.
  bool receive();
  const std::vector<Heartbeat>& news() const { return incoming_; }
  // Sends all of `known`, except to ranks that have not yet received the previous beat.
  void send(const std::vector<Known>& known);
  // Before MPI ends: keep sending and receiving, and call this until it returns true. By then every rank has called it, and nobody waits
  // for news.
  bool everybody_leaves();
  // After that: send nothing, and call this until it returns true. By then every rank has called it, and no message is in transit.
  bool stop();
  int size() const { return size_; }

 private:
  struct Outgoing {
    int to;
    std::vector<Heartbeat> beats;
    MPI_Request request;
  };
  void post();
  bool all_sent();
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<Heartbeat> incoming_, next_;
  std::vector<Outgoing> outgoing_;  // forwards and backwards by 1, by 2, by 4, ...
  size_t turn_ = 0;
  MPI_Request receiving_ = MPI_REQUEST_NULL, leaving_ = MPI_REQUEST_NULL, barrier_ = MPI_REQUEST_NULL;
  bool asked_ = false, stopping_ = false, stopped_ = false;
};

// Replaces what is known by what is newer.
void merge(std::vector<Heartbeats::Known>& known, const std::vector<Heartbeat>& news, int64_t now_ns);

// What a judgement about late ranks is based on; everything refers to one group of ranks.
struct Lateness {
  std::string operation;
  double waited_s = 0;
  int64_t collective = -1;   // its number on the communicator of all ranks, or -1
  std::vector<int> members;  // ranks of the group, or those waited for, by world rank
  int self = 0, peer = -1;   // world ranks; peer: the only rank waited for, or -1
  bool any = false;          // any one of the members would do
  double silent_s = 5;       // a rank without a heartbeat for longer than this counts as dead
};
// "all-reduce (ring) waited 10.0 s; rank 2 on beta is behind: ..."
std::string describe_lateness(const Lateness&, const std::vector<Heartbeats::Known>& known, const std::vector<std::string>& hosts,
                              int64_t now_ns);

}  // namespace starling
