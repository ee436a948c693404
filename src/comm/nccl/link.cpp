#include "comm/nccl/link.h"

#include <algorithm>

namespace starling::STARLING_CUDA {
namespace {

constexpr Tag kNoticeTag = 32760, kNameTag = 32761;

std::string name_for_both(Communicator& comm, int from, int to) {
  const std::string own = comm.rank() == from ? new_name() : "";
  const Tensor words({NCCL_UNIQUE_ID_BYTES / 4}, DType::i32);
  const auto bytes = words.host_bytes();
  if (comm.rank() == from) {
    std::copy_n(reinterpret_cast<const std::byte*>(own.data()), bytes.size(), bytes.begin());
    comm.send(words, to, kNameTag).wait();
  } else {
    comm.receive(words, from, kNameTag).wait();
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// A receive: the card is asked for the message as soon as the sender's notice has arrived.
class Link::Receipt : public CardWait {
 public:
  Receipt(Link& link, Tensor x, Tag tag) : x(std::move(x)), tag(tag), link_(link) {}
  bool done() override {
    while (!operation && link_.take_notice(false, 0)) {
    }
    return operation && operation->done();
  }
  void wait(double deadline_s) override {
    while (!operation) link_.take_notice(true, deadline_s);
    operation->wait(deadline_s);
  }
  std::string late(double waited_s) override {
    if (operation) return operation->late(waited_s);
    return fmt::format(
        "a message with tag {} between stages waited {:.1f} s: rank {} on {} of their group has not sent it; raise "
        "strategy.deadline-seconds, or look at that rank's log",
        tag, waited_s, link_.from_, link_.comm_.host(link_.from_));
  }
  const Tensor x;
  const Tag tag;
  std::shared_ptr<CardOperation> operation;

 private:
  Link& link_;
};

Link::Link(std::shared_ptr<CardWatch> watch, Communicator& comm, int from, int to, std::shared_ptr<const CardGroup> group)
    : watch_(std::move(watch)), comm_(comm), from_(from), to_(to) {
  wire_ = std::make_unique<Wire>(watch_, std::move(group), name_for_both(comm, from, to), comm.deadline());
  const bool sends = comm.rank() == from;
  wire_->connect(sends ? std::set{1} : std::set<int>{}, sends ? std::set<int>{} : std::set{0}, comm.deadline());
}

Pending Link::send(const Tensor& x, Tag tag, double deadline_s) {
  if (x.bytes() == 0) return {};
  while (!notices_.empty() && notices_.front().pending.done()) notices_.pop_front();
  Notice notice{Tensor({3}, DType::i32), {}};
  int32_t* const words = notice.words.data<int32_t>();
  words[0] = tag;
  words[1] = static_cast<int32_t>(x.bytes() & 0x7fffffff);
  words[2] = static_cast<int32_t>(x.bytes() >> 31);
  notice.pending = comm_.send(notice.words, to_, kNoticeTag);
  notices_.push_back(std::move(notice));
  const auto operation = wire_->begin("a message", x, nullptr, deadline_s);
  wire_->group([&](ncclComm_t nccl) { NCCL_CALL(Send, x.raw(), static_cast<size_t>(x.bytes()), ncclUint8, 1, nccl, wire_->stream()); });
  wire_->end(*operation);
  watch_->count(x.bytes(), 0, 1);
  return {operation, deadline_s};
}

Pending Link::receive(const Tensor& x, Tag tag, double deadline_s) {
  if (x.bytes() == 0) return {};
  if (auto& early = early_[tag]; !early.empty()) {
    const Early message = std::move(early.front());
    early.pop_front();
    CHECK(message.x.bytes() == x.bytes(), "a message of {} bytes with tag {} in place of one of {}", message.x.bytes(), tag, x.bytes());
    message.operation->wait(deadline_s);
    watch_->device().memory().copy(x.raw(), message.x.raw(), x.bytes());
    return {};
  }
  const auto receipt = std::make_shared<Receipt>(*this, x, tag);
  open_.push_back(receipt);
  if (notices_.size() < open_.size()) expect_notice();
  return {receipt, deadline_s};
}

void Link::expect_notice() {
  Notice notice{Tensor({3}, DType::i32), {}};
  notice.pending = comm_.receive(notice.words, from_, kNoticeTag);
  notices_.push_back(std::move(notice));
}

bool Link::take_notice(bool patiently, double deadline_s) {
  if (notices_.empty()) expect_notice();
  if (!patiently && !notices_.front().pending.done()) return false;
  notices_.front().pending.wait(deadline_s);
  const Tensor words = std::move(notices_.front().words);
  notices_.pop_front();
  const Tag tag = words.data<int32_t>()[0];
  const int64_t bytes = words.data<int32_t>()[1] + (int64_t{words.data<int32_t>()[2]} << 31);
  const auto waiting = std::find_if(open_.begin(), open_.end(), [&](const auto& receipt) { return receipt->tag == tag; });
  if (waiting == open_.end()) {
    const Tensor x({bytes}, DType::i8, watch_->device().memory());
    early_[tag].push_back({fetch(x, deadline_s), x});
    return true;
  }
  Receipt& receipt = **waiting;
  CHECK(receipt.x.bytes() == bytes, "a message of {} bytes with tag {} in place of one of {}", bytes, tag, receipt.x.bytes());
  receipt.operation = fetch(receipt.x, deadline_s);
  open_.erase(waiting);
  return true;
}

std::shared_ptr<CardOperation> Link::fetch(const Tensor& x, double deadline_s) {
  const auto operation = wire_->begin("a message", x, nullptr, deadline_s);
  wire_->group([&](ncclComm_t nccl) { NCCL_CALL(Recv, x.raw(), static_cast<size_t>(x.bytes()), ncclUint8, 0, nccl, wire_->stream()); });
  wire_->end(*operation);
  watch_->count(0, x.bytes(), 0);
  return operation;
}

}  // namespace starling::STARLING_CUDA
