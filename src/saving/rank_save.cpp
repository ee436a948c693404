#include "saving/rank_save.h"

#include "base/resource_error.h"
#include "base/start_threads.h"
#include "saving/sent_files.h"

namespace starling {
namespace {

using Json = nlohmann::json;

constexpr const char* kMark = "mark.tmp";  // in the directory aside, while ranks look whether they see it

// Passes pieces on until the save is cancelled: a rank that has failed elsewhere must not go on writing for minutes.
class CancellableSink final : public ByteSink {
 public:
  CancellableSink(ByteSink& to, const GoOn& go_on) : to_(to), go_on_(go_on) {}
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override {
    for (constexpr size_t kPiece = 4 << 20; !bytes.empty(); bytes = bytes.subspan(std::min(kPiece, bytes.size()))) {
      go_on_();
      to_.write(bytes.first(std::min(kPiece, bytes.size())));
    }
  }

 private:
  ByteSink& to_;
  const GoOn& go_on_;
};

}  // namespace

RankSave::RankSave(SavePlace place, Communicator& comm)
    : place_(std::move(place)), comm_(comm), aside_(checkpoint_aside(place_.run_directory, place_.step)), votes_({1}, DType::f64) {}

RankSave::~RankSave() {
  cancelled_ = true;
  join();
}

std::string RankSave::of_rank(int rank, const std::string& why) const {
  return comm_.size() == 1 ? why : fmt::format("rank {} on {}: {}", rank, comm_.host(rank), why);
}

// Waits for all ranks, however long their files take.
void RankSave::together() {
  if (comm_.size() > 1) comm_.barrier().wait(kNoDeadline);
}

// Tells all ranks what rank 0 knows.
std::string RankSave::tell(const std::string& complaint) {
  const std::string told = comm_.size() == 1 ? complaint : broadcast_text(comm_, complaint);
  return told.empty() ? "" : of_rank(0, told);
}

// Makes the directory; returns on all ranks what is wrong, or "".
std::string RankSave::open() {
  std::string complaint;
  if (comm_.rank() == 0)
    complaint = complaint_of([&] {
      publication_ = place_.checkpoints->begin(place_.step);
      if (comm_.size() > 1) place_.files.write_file(join_path(aside_, kMark), place_.mark);
    });
  together();  // a disk that hangs is no reason to end the run
  return tell(complaint);
}

// Whether this rank sees the directory that rank 0 has made, and not one of its own host.
bool RankSave::sees() const {
  if (comm_.size() == 1) return true;
  const std::string mark = broadcast_text(comm_, place_.mark);
  if (comm_.rank() == 0) return true;
  try {
    const std::string path = join_path(aside_, kMark);
    return place_.files.info(path).kind == FileKind::file && place_.files.read_file(path) == mark;
  } catch (const IoError&) {
    return false;
  }
}

// Writes a rank's parts if it can, and returns what all ranks need to know of them. Parts without a hash are still to be sent.
Json RankSave::write(std::span<const Part> own, bool writes) const {
  Json told = {{"error", ""}, {"parts", Json::array()}};
  told["error"] = complaint_of([&] {
    for (const Part& part : own) {
      const PartInfo info = writes ? write_part(place_.files, aside_, part) : PartInfo{part.name, part.expected_bytes, ""};
      told["parts"].push_back({{"name", info.name}, {"size", info.size}, {"sha256", info.sha256}});
    }
  });
  return told;
}

// Gathers on rank 0 what all have written, and receives what they could not write. Returns on all ranks what one of them has told of.
std::string RankSave::collect(std::span<const Part> own, const Json& mine) {
  const bool first = comm_.rank() == 0;
  std::vector<Json> all{mine};
  if (comm_.size() > 1) {
    all.clear();
    for (const std::string& text : gather_texts(comm_, mine.dump(-1, ' ', false, Json::error_handler_t::replace)))
      all.push_back(Json::parse(text));
  }
  for (int r = 0; r < comm_.size(); ++r)
    if (const auto error = all[static_cast<size_t>(r)]["error"].get<std::string>(); !error.empty()) return of_rank(r, error);
  for (int r = 0; r < comm_.size(); ++r)
    for (size_t i = 0; const Json& part : all[static_cast<size_t>(r)]["parts"]) {
      const Part* sent = r == comm_.rank() && i < own.size() ? &own[i] : nullptr;
      ++i;
      PartInfo info{part["name"], part["size"], part["sha256"]};
      if (info.sha256.empty() && first) {
        Incoming incoming(comm_, r, info.size);
        const Part received{info.name, [&](ByteSink& sink) { incoming.pass_to(sink); }, info.size};
        if (complaint_.empty()) complaint_ = complaint_of([&] { info = write_part(place_.files, aside_, received); });
        incoming.discard();
      }
      if (info.sha256.empty() && sent) {
        SendingSink sink(comm_, 0);
        sent->write(sink);
        sink.send();
      }
      if (first && complaint_.empty()) publication_->add(std::move(info));
    }
  return "";
}

// On rank 0, if nothing has failed.
void RankSave::publish() {
  if (comm_.rank() != 0 || !complaint_.empty()) return;
  complaint_ = complaint_of([&] {
    if (comm_.size() > 1) place_.files.remove(join_path(aside_, kMark));
    const Report report = [&](const std::string& line) { reports_.push_back(line); };
    place_.checkpoints->commit(*publication_, report, [&] {
      go_on_();
      if (copy_skipped_) throw IoError("it was cancelled in favour of the run's last checkpoint");
    });
  });
}

std::string RankSave::save(std::span<const Part> own, const AroundWriting& around) {
  phase_ = Phase::over;
  result_ = open();
  if (result_.empty()) result_ = finish(own, around, sees());
  return result_;
}

// All that comes after open().
std::string RankSave::finish(std::span<const Part> own, const AroundWriting& around, bool writes) {
  around.before();
  const Json mine = write(own, writes);
  around.after();
  together();  // writing takes long; the gather has the usual deadline
  if (const std::string known = collect(own, mine); !known.empty()) return known;
  publish();
  together();
  return tell(complaint_);
}

void RankSave::begin(std::span<const Part> own, const AroundWriting& around, Copies& copies, bool at_once) {
  phase_ = Phase::over;
  at_once_ = at_once;
  result_ = open();
  if (!result_.empty()) return;
  const bool writes = sees(), beside = writes && (at_once || copies.make_room(own));
  bool all = beside;
  together();
  if (comm_.size() > 1)
    for (const std::string& of_rank : gather_texts(comm_, beside ? "beside" : "")) all = all && of_rank == "beside";
  if (!all) {
    result_ = finish(own, around, writes);
    return;
  }
  phase_ = Phase::writing;
  around.before();
  if (at_once)
    written_ = write(own, true);
  else
    copied_ = copies.of(own);
  around.after();
  ended_ = at_once;
  if (at_once) return;
  for (Part& part : copied_)
    part.write = [this, write = std::move(part.write)](ByteSink& to) {
      CancellableSink sink(to, go_on_);
      write(sink);
    };
  run([this] { written_ = write(copied_, true); });
}

std::optional<std::string> RankSave::advance(bool wait) {
  while (phase_ != Phase::over) {
    if (!all_have_ended(wait)) return std::nullopt;
    join();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    if (phase_ == Phase::publishing) {
      result_ = tell(complaint_);
      phase_ = Phase::over;
    } else if (result_ = collect(copied_, written_); !result_.empty()) {
      phase_ = Phase::over;
    } else {
      phase_ = Phase::publishing;
      run([this] { publish(); });
    }
  }
  return result_;
}

// Does something on a thread beside training.
void RankSave::run(std::function<void()> body) {
  ended_ = at_once_;
  if (at_once_) return body();
  const auto whole = [this, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      error_ = std::current_exception();
    }
    ended_ = true;
  };
  try {
    thread_ = start_thread("checkpoint", whole);
  } catch (const ResourceError&) {  // there are no more threads
    whole();
  }
}

// Whether the threads of all ranks have ended, as they all know: each sum of votes is awaited an update after it was begun.
bool RankSave::all_have_ended(bool wait) {
  if (wait) join();
  if (comm_.size() == 1) return ended_;
  for (;;) {
    if (vote_) {
      vote_->wait(kNoDeadline);
      vote_.reset();
      if (doubles_of(votes_)[0] == comm_.size()) return true;
    }
    doubles_of(votes_)[0] = ended_ ? 1 : 0;
    vote_ = comm_.all_reduce(votes_);
    if (!wait) return false;
  }
}

void RankSave::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace starling
