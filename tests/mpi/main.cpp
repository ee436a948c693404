// Runs the tests on all ranks. Rank 0 prints as usual, the others only failures. A failed test ends all ranks: they are no longer in step.
// --end=exit|kill|throw|stop|lost|late instead ends rank 1 early, or stops it (lost: while another one always has something to say; late:
// when the others are done), --end=leave ends all but ranks 0 and 3 of six, which is no failure; for failing.sh.
// --measure=MB prints figures, --ring=MB exchanges so much once (measure.h).
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/mpi/fixture.h"
#include "tests/mpi/measure.h"

namespace starling {
namespace {

World* the_world = nullptr;

class Report : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    if (testing::UnitTest::GetInstance()->Failed()) abort_run(1);
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed() && test_comm().rank() > 0)
      fmt::print(stderr, "{}{}:{}: {}\n", rank_label(), result.file_name() ? result.file_name() : "?", result.line_number(),
                 result.message());
  }
};

int run_tests() {
  World world = make_mpi_world();
  world.comm->set_deadline(60);
  the_world = &world;
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world.comm->rank() > 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Report);
  const int status = RUN_ALL_TESTS();
  if (status != 0) abort_run(status);
  return 0;
}

// News of rank 0 reaches rank 3, which waits for its word longer than silence is allowed to last among six (8 s), by way of ranks that
// have left.
int leave_two_behind(Communicator& comm) {
  const Tensor word({1}, DType::f64);
  if (comm.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    comm.send(word, 3, 1).wait();
  }
  if (comm.rank() == 3) comm.receive(word, 0, 1).wait(kNoDeadline);
  return 0;
}

// Rank 0 serves the others, of which one has stopped; the other never lets it wait.
int lose_one_of_three(Communicator& comm) {
  if (comm.rank() == 1) kill(getpid(), SIGSTOP);
  const Tensor word({1}, DType::f64), silent({1}, DType::f64);
  const Pending from_stopped = comm.rank() == 0 ? comm.receive(silent, 1, 1) : Pending();
  for (;;) {
    if (comm.rank() == 0) {
      const std::vector<Pending> pending{from_stopped, comm.receive(word, 2, 1)};
      wait_any(pending, kNoDeadline);
    } else {
      comm.send(word, 0, 1).wait(60);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

// What the program does when something goes wrong on one rank only; the others wait for it.
int end_early(const std::string& how) {
  try {
    World world = make_mpi_world();
    Communicator& comm = *world.comm;
    comm.set_deadline(60);
    comm.barrier().wait();
    comm.set_deadline(2);
    comm.barrier().wait(60);
    if (how == "leave") return leave_two_behind(comm);
    if (how == "lost") return lose_one_of_three(comm);
    if (comm.rank() == 1 && how == "exit") _exit(7);
    if (comm.rank() == 1 && how == "kill") kill(getpid(), SIGKILL);
    if (comm.rank() == 1 && (how == "stop" || how == "late")) kill(getpid(), SIGSTOP);
    if (comm.rank() == 1) throw DataError("corpus.de:17: this line is a test");
    if (how != "late") comm.barrier().wait(how == "stop" ? kNoDeadline : 60);
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "{}{}\n", rank_label(), e.what());
    abort_run(3);
  }
}

}  // namespace

World& test_world() { return *the_world; }

}  // namespace starling

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::strncmp(argv[1], "--end=", 6) == 0) return starling::end_early(argv[1] + 6);
  if (argc > 1 && std::strncmp(argv[1], "--measure=", 10) == 0) {
    const starling::World world = starling::make_mpi_world();
    starling::measure(*world.comm, std::atof(argv[1] + 10));
    return 0;
  }
  if (argc > 1 && std::strncmp(argv[1], "--ring=", 7) == 0) {
    const starling::World world = starling::make_mpi_world();
    starling::one_ring(*world.comm, std::atof(argv[1] + 7));
    return 0;
  }
  return starling::run_tests();
}
