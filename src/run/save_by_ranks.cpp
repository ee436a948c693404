#include "run/save_by_ranks.h"

#include <algorithm>
#include <cstring>

#include "base/json.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr Tag kPartTag = 2;
constexpr size_t kPiece = 4 << 20;         // bytes a message
constexpr const char* kMark = "mark.tmp";  // in the directory aside, while ranks look whether they see it

// Sends what is written to rank 0, in pieces.
class SendingSink final : public ByteSink {
 public:
  explicit SendingSink(Communicator& comm) : comm_(comm) {}
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kPiece - filled_);
      std::memcpy(piece_.host_bytes().data() + filled_, bytes.data(), n);
      bytes = bytes.subspan(n);
      if ((filled_ += n) == kPiece) send();
    }
  }
  void send() {
    if (filled_ > 0) comm_.send(piece_.slice(0, Shape{static_cast<int64_t>(filled_)}), 0, kPartTag).wait(kNoDeadline);
    filled_ = 0;
  }

 private:
  Communicator& comm_;
  const Tensor piece_{{static_cast<int64_t>(kPiece)}, DType::i8};
  size_t filled_ = 0;
};

// Returns the part that a SendingSink on another rank sends.
Part received_part(Communicator& comm, int from, const std::string& name, uint64_t size) {
  const auto write = [&comm, from, size](ByteSink& sink) {
    const Tensor piece({static_cast<int64_t>(kPiece)}, DType::i8);
    for (uint64_t left = size; left > 0;) {
      const auto n = std::min<uint64_t>(left, kPiece);
      comm.receive(piece.slice(0, Shape{static_cast<int64_t>(n)}), from, kPartTag).wait(kNoDeadline);
      sink.write(piece.host_bytes().first(n));
      left -= n;
    }
  };
  return {name, write, size};
}

// Whether this rank sees the directory that rank 0 has made, and not one of its own host.
bool sees(FileSystem& files, const std::string& aside, const std::string& mark) {
  try {
    const std::string path = join_path(aside, kMark);
    return files.info(path).kind == FileKind::file && files.read_file(path) == mark;
  } catch (const IoError&) {
    return false;
  }
}

// Writes a rank's parts if it can, and returns what all ranks need to know of them. Parts without a hash are still to be sent.
Json write_own(FileSystem& files, const std::string& aside, std::span<const Part> own, bool writes) {
  Json told = {{"error", ""}, {"parts", Json::array()}};
  try {
    for (const Part& part : own) {
      const PartInfo info = writes ? write_part(files, aside, part) : PartInfo{part.name, part.expected_bytes, ""};
      told["parts"].push_back({{"name", info.name}, {"size", info.size}, {"sha256", info.sha256}});
    }
  } catch (const IoError& e) {
    told["error"] = e.what();
  }
  return told;
}

}  // namespace

void save_by_ranks(FileSystem& files, const std::string& run_directory, CheckpointStore* checkpoints, int64_t step,
                   std::span<const Part> own, const std::string& mark, Communicator& comm, const AroundWriting& around) {
  if (comm.size() == 1) return checkpoints->save(step, own);
  const bool first = comm.rank() == 0;
  const auto all_together = [&] { comm.barrier().wait(kNoDeadline); };
  const std::string aside = checkpoint_aside(run_directory, step);
  auto publication = first ? checkpoints->begin(step) : nullptr;
  if (first) files.write_file(join_path(aside, kMark), mark);
  const std::string told_mark = broadcast_text(comm, mark);
  around.before();
  const Json mine = write_own(files, aside, own, first || sees(files, aside, told_mark));
  around.after();
  all_together();  // writing takes long; the gather has the usual deadline
  std::vector<Json> all;
  for (const std::string& text : gather_texts(comm, mine.dump(-1, ' ', false, Json::error_handler_t::replace)))
    all.push_back(Json::parse(text));
  for (int r = 0; r < comm.size(); ++r)
    if (const auto error = all[static_cast<size_t>(r)]["error"].get<std::string>(); !error.empty()) {
      if (!first) all_together();  // rank 0 reports it, once nothing is left of the checkpoint, and ends the others
      publication.reset();
      throw IoError(fmt::format("the checkpoint of update {} cannot be saved: rank {} on {}: {}", step, r, comm.host(r), error));
    }
  for (int r = 0; r < comm.size(); ++r)
    for (size_t i = 0; const Json& part : all[static_cast<size_t>(r)]["parts"]) {
      const Part* sent = r == comm.rank() ? &own[i] : nullptr;
      ++i;
      PartInfo info{part["name"], part["size"], part["sha256"]};
      if (info.sha256.empty() && first) info = write_part(files, aside, received_part(comm, r, info.name, info.size));
      if (info.sha256.empty() && sent) {
        SendingSink sink(comm);
        sent->write(sink);
        sink.send();
      }
      if (first) publication->add(std::move(info));
    }
  if (first) {
    files.remove(join_path(aside, kMark));
    checkpoints->commit(*publication);
  }
  all_together();
}

}  // namespace starling
