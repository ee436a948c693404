#include "strategies/asynchronous_server.h"

#include <algorithm>
#include <cmath>

namespace starling {
AsynchronousServer::AsynchronousServer(const StrategyOptions& options, int workers, Range part, bool first)
    : options_(options), workers_(workers), part_(part), first_(first) {
  sum_pushes_ = options.asynchronous.sum_pushes > 0 ? options.asynchronous.sum_pushes : workers;
}

Tensor AsynchronousServer::values(Worker& w) const { return w.parameters().values().slice(part_.begin, Shape{part_.count()}); }

Tensor AsynchronousServer::buffer(Worker& w) {
  if (free_.empty()) return working_tensor(w, part_.count(), w.parameters().values().dtype());
  Tensor x = std::move(free_.back());
  free_.pop_back();
  return x;
}

void AsynchronousServer::serve(Worker& w, const Tensor& progress) {
  start(w, progress);
  while (present_ > 0) {
    // The first worker may take long to validate. If it waits like the others, or has left, a silent worker is lost.
    const bool patient = !clients_[0].gone && !clients_[0].waiting;
    std::vector<Pending> open;
    std::vector<Client*> whose;
    for (Client& c : clients_)
      if (!c.gone && (patient || !c.waiting)) open.push_back(c.incoming), whose.push_back(&c);
    w.comm().note("serving", version_);
    Client& c = *whose[wait_any(open, patient ? kNoDeadline : w.comm().deadline())];
    if (!stop_ && w.asked_to_stop()) {
      stop_ = true;
      answer_waiting(w);
    }
    if (c.pushing)
      take(w, c);
    else
      read(w, c);
  }
  for (Client& c : clients_) {
    c.word.wait();
    for (const Sent& s : c.sent)
      for (const Pending& p : s.pending) p.wait();
  }
  if (first_) w.comm().send(summary().pack(), 0, kWholeTag).wait();
  w.parameters().changed();
}

void AsynchronousServer::start(Worker& w, const Tensor& progress) {
  const std::span<const double> x = doubles_of(progress);
  // The checkpoint of a synchronous run has only the number of updates.
  const bool known = x[2] > 0;
  version_ = known ? static_cast<int64_t>(x[0]) : w.optimizer().updates();
  updates_ = known ? std::llround(x[2] * workers_) : version_ * workers_;
  pushes_ = known ? static_cast<int64_t>(x[1]) : updates_;
  served_steps_ = version_;
  served_pushes_ = pushes_;
  w.optimizer().set_updates(version_);
  budget_ = workers_ * w.planned_updates();
  finished_ = updates_ >= budget_;
  const DType type = w.parameters().values().dtype();
  narrow_ = options_.wire == Wire::bf16 && type == DType::f32;
  sum_ = buffer(w);
  if (narrow_) widened_ = buffer(w);
  clients_.resize(static_cast<size_t>(workers_));
  present_ = workers_;
  for (int r = 0; r < workers_; ++r) {
    Client& c = clients_[static_cast<size_t>(r)];
    c.rank = r;
    c.request = Tensor({Request::kNumbers}, DType::f64);
    if (!narrow_)
      c.payload = buffer(w);
    else
      c.payload = working_tensor(w, part_.count(), DType::bf16);
    listen(w, c);
  }
}

void AsynchronousServer::listen(Worker& w, Client& c) { c.incoming = w.comm().receive(c.request, c.rank, kRequestTag); }

void AsynchronousServer::read(Worker& w, Client& c) {
  const Request request = Request::unpack(c.request);
  switch (request.kind) {
    case Request::push:
      c.push = request;
      c.pushing = true;
      c.incoming = w.comm().receive(c.payload, c.rank, kPushTag);
      return;
    case Request::fetch:
      c.waiting = options_.asynchronous.wait_for_step && c.effective > version_ && !ending();
      held_ += c.waiting;
      if (!c.waiting) answer(w, c);
      break;
    case Request::look:
    case Request::save:
      send_whole(w, c, request.kind == Request::save);
      break;
    case Request::leave:
      return let_go(w, c);
  }
  listen(w, c);
}

// A push has come.
void AsynchronousServer::take(Worker& w, Client& c) {
  const Request& push = c.push;
  in_pushes_.add(pushes_ - push.base_pushes);
  in_steps_.add(version_ - push.base_version);
  add_gradient(w, c);
  ++pushes_;
  ++summed_;
  updates_ += push.updates;
  c.updates += push.updates;
  sums_ += push.sums;
  stop_ = stop_ || push.sums.control.stop > 0;
  finished_ = finished_ || push.sums.control.finished > 0 || updates_ >= budget_;
  c.effective = version_ + 1;
  c.pushing = false;
  if (words_on_pushes(options_.asynchronous)) send_word(w, c);
  listen(w, c);
  if (summed_ == sum_pushes_) step(w);
  answer_waiting(w);
}

// The buffer of the first push becomes the sum, without a copy.
void AsynchronousServer::add_gradient(Worker& w, Client& c) {
  const double bytes = static_cast<double>(part_.count() * size_of(sum_.dtype()));
  FlatOps& flat = w.parameters().backend().flat();
  Tensor& gradient = narrow_ ? widened_ : c.payload;
  if (narrow_) w.clock().spend({Work::memory, 0, 1.5 * bytes}, [&] { flat.convert(c.payload, widened_); });
  compensate(w, c, gradient);
  if (summed_ == 0)
    std::swap(sum_, gradient);
  else
    w.clock().spend({Work::memory, 0, 3 * bytes}, [&] { flat.scale(gradient, 1, sum_, Write::accumulate); });
}

// g + lambda g^2 (p - p_fetched) for the mean gradient g; here it is a sum over tokens.
void AsynchronousServer::compensate(Worker& w, Client& c, const Tensor& gradient) {
  const double lambda = options_.asynchronous.delay_compensation;
  if (lambda == 0) return;
  while (!c.sent.empty() && c.sent.front().version < c.push.base_version) {
    for (const Pending& p : c.sent.front().pending) p.wait();
    free_.push_back(std::move(c.sent.front().values));
    c.sent.pop_front();
  }
  CHECK(!c.sent.empty() && c.sent.front().version == c.push.base_version, "rank {} pushes a gradient of version {}", c.rank,
        c.push.base_version);
  const double factor = lambda / w.gradient_divisor(c.push.sums.totals);
  const Tensor now = values(w), &then = c.sent.front().values;
  w.clock().spend({Work::memory, 0, 4.0 * static_cast<double>(gradient.bytes())},
                  [&] { w.parameters().backend().flat().compensate(gradient, now, then, factor); });
}

void AsynchronousServer::step(Worker& w) {
  const int64_t update = (updates_ + workers_ - 1) / workers_;  // of the run, which counts one per worker
  rate_ = w.learning_rate(update);
  Optimizer& optimizer = w.optimizer();
  const double moved = optimizer.elements_moved() * static_cast<double>(part_.count() * size_of(sum_.dtype()));
  optimizer.begin_update(update);
  w.clock().spend({Work::update, 0, moved},
                  [&] { optimizer.update_part(values(w), sum_, part_.begin, 1 / w.gradient_divisor(sums_.totals), rate_); });
  ++version_;
  summed_ = 0;
  unreported_ += sums_;
  sums_ = {};
}

void AsynchronousServer::send_word(Worker& w, Client& c) const {
  c.word.wait();  // the worker has waited for it since it pushed
  const Tensor word({1}, DType::f64);
  doubles_of(word)[0] = stop_ || finished_ ? 1 : 0;
  c.word = w.comm().send(word, c.rank, kWordTag);
}

void AsynchronousServer::answer_waiting(Worker& w) {
  for (Client& c : clients_)
    if (c.waiting && (c.effective <= version_ || ending())) answer(w, c);
}

// Sends copies, since later pushes change the parameters while they are in transit.
void AsynchronousServer::answer(Worker& w, Client& c) {
  c.waiting = false;
  // The worker has the older of the two and is about to get the newer one.
  const size_t keep = options_.asynchronous.delay_compensation > 0 ? 1 : 0;
  while (c.sent.size() > keep) {
    for (const Pending& p : c.sent.front().pending) p.wait();
    free_.push_back(std::move(c.sent.front().values));
    c.sent.pop_front();
  }
  Sent& s = c.sent.emplace_back();
  s.version = version_;
  s.values = buffer(w);
  w.clock().spend({Work::memory, 0, 2.0 * static_cast<double>(s.values.bytes())}, [&] { s.values.copy_from(values(w)); });
  Answer a;
  a.version = version_;
  a.pushes = pushes_;
  a.stop = stop_;
  a.finished = finished_;
  a.rate = rate_;
  a.fraction = static_cast<double>(updates_) / static_cast<double>(std::max<int64_t>(1, budget_));
  if (first_ && c.rank == 0) a.totals = std::exchange(unreported_, {}).totals;
  s.answer = a.pack();
  s.pending = {w.comm().send(s.answer, c.rank, kAnswerTag), w.comm().send(s.values, c.rank, kValuesTag)};
}

// A snapshot of one moment, so nobody else is served during it.
void AsynchronousServer::send_whole(Worker& w, const Client& c, bool state) const {
  std::vector<Tensor> parts{values(w)};
  if (state) {
    for (const auto& [name, tensor] : w.optimizer().state()) parts.push_back(tensor);
    if (first_) {
      parts.emplace_back(Shape{kProgress}, DType::f64);
      const std::span<double> x = doubles_of(parts.back());
      x[0] = static_cast<double>(version_);
      x[1] = static_cast<double>(pushes_);
      x[2] = static_cast<double>(updates_) / workers_;
    }
  }
  std::vector<Pending> pending;
  for (const Tensor& part : parts) pending.push_back(w.comm().send(part, c.rank, kWholeTag));
  for (const Pending& p : pending) p.wait();
}

void AsynchronousServer::let_go(Worker& w, Client& c) {
  c.gone = true;
  --present_;
  answer_waiting(w);  // the sum that they wait for may never be complete
}

AsynchronousSummary AsynchronousServer::summary() const {
  AsynchronousSummary s;
  s.pushes = static_cast<double>(pushes_ - served_pushes_);
  s.steps = static_cast<double>(version_ - served_steps_);
  s.in_pushes = in_pushes_.delay();
  s.in_steps = in_steps_.delay();
  s.held = static_cast<double>(held_);
  for (const Client& c : clients_) {
    const auto n = static_cast<double>(c.updates);
    s.fewest_updates = c.rank == 0 ? n : std::min(s.fewest_updates, n);
    s.most_updates = std::max(s.most_updates, n);
    s.updates += n;
  }
  return s;
}

AsynchronousSummary::Delay AsynchronousServer::Histogram::delay() const {
  if (total_ == 0) return {};
  double sum = 0;
  for (const auto& [value, count] : counts_) sum += static_cast<double>(value) * static_cast<double>(count);
  return {sum / static_cast<double>(total_), quantile(0.5), quantile(0.95), static_cast<double>(counts_.rbegin()->first)};
}

// The smallest value that a share q of all values does not exceed.
double AsynchronousServer::Histogram::quantile(double q) const {
  int64_t seen = 0;
  for (const auto& [value, count] : counts_) {
    seen += count;
    if (static_cast<double>(seen) >= q * static_cast<double>(total_)) return static_cast<double>(value);
  }
  return 0;
}

}  // namespace starling
