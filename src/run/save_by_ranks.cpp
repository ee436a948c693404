#include "run/save_by_ranks.h"

#include "base/json.h"
#include "run/sent_files.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr const char* kMark = "mark.tmp";  // in the directory aside, while ranks look whether they see it

// Does something with files, and returns what is wrong, or "".
std::string complaint_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const IoError& e) {
    return e.what();
  }
  return "";
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

std::string save_by_ranks(FileSystem& files, const std::string& run_directory, CheckpointStore* checkpoints, int64_t step,
                          std::span<const Part> own, const std::string& mark, Communicator& comm, const AroundWriting& around) {
  if (comm.size() == 1) return complaint_of([&] { checkpoints->save(step, own); });
  const bool first = comm.rank() == 0;
  const auto all_together = [&] { comm.barrier().wait(kNoDeadline); };
  const auto of_rank = [&](int rank, const std::string& why) { return fmt::format("rank {} on {}: {}", rank, comm.host(rank), why); };
  const std::string aside = checkpoint_aside(run_directory, step);
  std::unique_ptr<Publication> publication;
  std::string complaint;
  if (first)
    complaint = complaint_of([&] {
      publication = checkpoints->begin(step);
      files.write_file(join_path(aside, kMark), mark);
    });
  if (const std::string told = broadcast_text(comm, complaint); !told.empty()) return of_rank(0, told);
  const std::string told_mark = broadcast_text(comm, mark);
  around.before();
  const Json mine = write_own(files, aside, own, first || sees(files, aside, told_mark));
  around.after();
  all_together();  // writing takes long; the gather has the usual deadline
  std::vector<Json> all;
  for (const std::string& text : gather_texts(comm, mine.dump(-1, ' ', false, Json::error_handler_t::replace)))
    all.push_back(Json::parse(text));
  for (int r = 0; r < comm.size(); ++r)
    if (const auto error = all[static_cast<size_t>(r)]["error"].get<std::string>(); !error.empty()) return of_rank(r, error);
  for (int r = 0; r < comm.size(); ++r)
    for (size_t i = 0; const Json& part : all[static_cast<size_t>(r)]["parts"]) {
      const Part* sent = r == comm.rank() ? &own[i] : nullptr;
      ++i;
      PartInfo info{part["name"], part["size"], part["sha256"]};
      if (info.sha256.empty() && first) {
        Incoming incoming(comm, r, info.size);
        const Part received{info.name, [&](ByteSink& sink) { incoming.pass_to(sink); }, info.size};
        if (complaint.empty()) complaint = complaint_of([&] { info = write_part(files, aside, received); });
        incoming.discard();
      }
      if (info.sha256.empty() && sent) {
        SendingSink sink(comm, 0);
        sent->write(sink);
        sink.send();
      }
      if (first && complaint.empty()) publication->add(std::move(info));
    }
  if (first && complaint.empty())
    complaint = complaint_of([&] {
      files.remove(join_path(aside, kMark));
      checkpoints->commit(*publication);
    });
  all_together();
  const std::string told = broadcast_text(comm, complaint);
  return told.empty() ? "" : of_rank(0, told);
}

}  // namespace starling
