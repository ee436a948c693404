// Decides whether the ranks' cards are connected, and connects them.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <set>

#include "comm/nccl/channel.h"
#include "comm/nccl/nccl.h"

namespace starling::STARLING_CUDA {
namespace {

std::string version_text(int version) { return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100); }

// Identifies a card, whatever its host and number.
std::string name_of_card(const CudaDevice& device) {
  std::string name;
  for (const char c : device.properties().uuid.bytes) name += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return name;
}

}  // namespace

std::string nccl_version() {
  int version = 0;
  if (!nccl_problem().empty()) return "none";
  return ncclGetVersion(&version) == ncclSuccess ? version_text(version) : "none";
}

std::string why_too_old(int version, int64_t groups) {
  constexpr int kAbortsTogether = 22200;  // before, the abort of one communicator waits for the kernels of another
  if (groups < 2 || version >= kAbortsTogether) return "";
  return fmt::format(
      "NCCL {} cannot end the groups of a divided model's card together when a rank is lost, which {} can; install that, or "
      "leave parallel.pipeline and parallel.tensor at 1",
      version_text(version), version_text(kAbortsTogether));
}

void prepare_environment(const Communicator& comm, bool divided) {
  if (comm.size() == 1) return;
  const auto set = [](const char* name, const char* value) { setenv(name, value, 0); };
  // Loading a kernel at its first call may need an idle card, but the card is busy while NCCL waits for another rank: the two could wait
  // for each other.
  set("CUDA_MODULE_LOADING", "EAGER");
  // A divided model has a stream for each group and link. Streams that share a hardware queue, of which there are eight by default, wait
  // for each other.
  if (divided) set("CUDA_DEVICE_MAX_CONNECTIONS", "32");
  // NCCL's own collectives are connected together with their group, not by their first call, which would wait for the other hosts.
  if (comm.algorithm() == Algorithm::library) set("NCCL_RUNTIME_CONNECT", "0");
}

CardConnection connect_cards(Communicator& comm, Memory& memory) {
  if (comm.size() == 1) return {};
  auto* const cards = dynamic_cast<CudaMemory*>(&memory);
  // "" for a rank that computes on its processor.
  const std::vector<std::string> names = gather_texts(comm, cards ? name_of_card(cards->device()) : "");
  const std::vector<std::string> versions = gather_texts(comm, nccl_version());
  const auto without = std::count(names.begin(), names.end(), "");
  if (without == comm.size()) return {};
  const auto through_hosts = [](const std::string& why) {
    return CardConnection{why + ": gradients on cards go through the hosts' memory and MPI", {}};
  };
  if (without > 0) return through_hosts(fmt::format("{} of {} ranks compute without a card", without, comm.size()));
  for (size_t a = 0; a < names.size(); ++a)
    for (size_t b = a + 1; b < names.size(); ++b)
      if (names[a] == names[b])
        return through_hosts(fmt::format("ranks {} and {} on {} share a card, which NCCL does not allow; start one rank per card", a, b,
                                         comm.host(static_cast<int>(a))));
  if (!nccl_problem().empty()) return through_hosts("NCCL cannot be used here (" + nccl_problem() + ")");
  for (size_t r = 1; r < versions.size(); ++r)
    if (versions[r] != versions[0]) return through_hosts(fmt::format("rank 0 has NCCL {}, rank {} has {}", versions[0], r, versions[r]));

  const auto watch = std::make_shared<CardWatch>(cards->device().shared_from_this(), comm);
  comm.connect(std::make_shared<NcclChannel>(watch, comm, "all ranks"));
  const auto disconnect = [watch, &comm, before = std::uncaught_exceptions()](void*) {
    if (std::uncaught_exceptions() > before)  // the others will not hear of this rank any more
      watch->fail(std::make_exception_ptr(PeerError(watch->name() + " has failed, and ends the work of its card; its log says more")));
    watch->stop();
    comm.connect(nullptr);
  };
  return {fmt::format("{} cards are connected by NCCL {}", comm.size(), versions[0]), std::shared_ptr<void>(watch.get(), disconnect)};
}

}  // namespace starling::STARLING_CUDA
