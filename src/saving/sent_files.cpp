#include "saving/sent_files.h"

#include <algorithm>
#include <cstring>

#include "base/json.h"
#include "base/sha256.h"

namespace starling {
namespace {

constexpr Tag kPartTag = 2;
constexpr size_t kMessage = 4 << 20;  // bytes

Tensor piece() { return Tensor({static_cast<int64_t>(kMessage)}, DType::i8); }

// What tells one checkpoint from another of the same path: its list of hashes. Without one, sizes must do.
std::string mark_of(FileSystem& files, const std::string& directory, const std::vector<std::string>& names) {
  const std::string manifest = join_path(directory, "manifest.json");
  if (files.info(manifest).kind == FileKind::file) return sha256_file(files, manifest);
  std::string sizes;
  for (const std::string& name : names) sizes += fmt::format("{} ", files.info(join_path(directory, name)).size);
  return sizes;
}

}  // namespace

std::string complaint_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const IoError& e) {
    return e.what();
  }
  return "";
}

void SendingSink::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kMessage - filled_);
    std::memcpy(piece_.host_bytes().data() + filled_, bytes.data(), n);
    bytes = bytes.subspan(n);
    if ((filled_ += n) == kMessage) send();
  }
}

void SendingSink::send() {
  if (filled_ > 0) comm_.send(piece_.slice(0, Shape{static_cast<int64_t>(filled_)}), to_, kPartTag).wait(kNoDeadline);
  filled_ = 0;
}

SendingSink::SendingSink(Communicator& comm, int to) : comm_(comm), to_(to), piece_(piece()) {}
Incoming::Incoming(Communicator& comm, int from, uint64_t size) : comm_(comm), from_(from), left_(size), piece_(piece()) {}

void Incoming::pass_to(ByteSink& sink) {
  while (left_ > 0) sink.write(next());
}

void Incoming::discard() {
  while (left_ > 0) next();
}

std::span<const std::byte> Incoming::next() {
  const auto n = std::min<uint64_t>(left_, kMessage);
  comm_.receive(piece_.slice(0, Shape{static_cast<int64_t>(n)}), from_, kPartTag).wait(kNoDeadline);
  left_ -= n;
  return piece_.host_bytes().first(n);
}

SeenDirectory::SeenDirectory(FileSystem& files, Communicator& comm, const std::string& run_directory, const std::string& directory,
                             const std::vector<std::string>& names, bool wanted)
    : directory_(directory), copy_{files, ""} {
  if (comm.size() == 1) return;
  const bool first = comm.rank() == 0;
  const std::string copy = join_path(run_directory, fmt::format(".tmp-received-{}", comm.rank()));
  std::string complaint;
  const auto record = [&](const std::function<void()>& body) {
    const std::string what = complaint_of(body);
    if (complaint.empty()) complaint = what;
  };
  nlohmann::json told = {{"mark", ""}, {"sizes", std::vector<uint64_t>(names.size())}};
  if (first)
    record([&] {
      told["mark"] = mark_of(files, directory, names);
      for (size_t i = 0; i < names.size(); ++i) told["sizes"][i] = files.info(join_path(directory, names[i])).size;
    });
  told = nlohmann::json::parse(broadcast_text(comm, first ? told.dump() : ""));
  bool lacks = false;
  if (!first)
    record([&] {
      files.remove_all(copy);
      lacks = wanted && (files.info(directory).kind != FileKind::directory || mark_of(files, directory, names) != told["mark"]);
      if (!lacks) return;
      copy_.path = copy;
      files.make_directories(copy);
    });
  const std::vector<std::string> all = gather_texts(comm, lacks ? "lacks" : "");
  for (int r = 1; r < comm.size(); ++r)
    for (size_t i = 0; all[static_cast<size_t>(r)] == "lacks" && i < names.size(); ++i) {
      const uint64_t size = told["sizes"][i];
      if (first) {
        SendingSink sink(comm, r);
        uint64_t sent = 0;
        const auto pass = [&](std::span<const std::byte> bytes) {
          bytes = bytes.first(static_cast<size_t>(std::min<uint64_t>(bytes.size(), size - sent)));
          sink.write(bytes), sent += bytes.size();
        };
        record([&] { files.read_pieces(join_path(directory, names[i]), pass); });
        if (sent < size && complaint.empty())
          complaint = fmt::format("{} became shorter while it was being sent", join_path(directory, names[i]));
        for (const std::vector<std::byte> rest(sent < size ? kMessage : 0); sent < size;) pass(rest);  // which is waited for
        sink.send();
      } else if (r == comm.rank()) {
        Incoming incoming(comm, 0, size);
        record([&] {
          const auto file = files.create(join_path(copy, names[i]), size);
          incoming.pass_to(*file);
          file->close();
        });
        incoming.discard();
      }
    }
  comm.barrier().wait(kNoDeadline);  // sending takes long; the gather has the usual deadline
  const std::vector<std::string> complaints = gather_texts(comm, complaint);
  for (int r = 0; r < comm.size(); ++r)
    if (const std::string& text = complaints[static_cast<size_t>(r)]; !text.empty())
      throw IoError(fmt::format("rank {} on {}: {}", r, comm.host(r), text));
}

SeenDirectory::Copy::~Copy() {
  try {
    if (!path.empty()) files.remove_all(path);
  } catch (...) {  // the next start removes it
  }
}

}  // namespace starling
