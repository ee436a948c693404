#include "strategies/compressed_exchange.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "strategies/steps.h"

namespace starling {
namespace {

Coding coding_of(const CompressionOptions& o) {
  if (o.compressor == Compressor::ternary) return Coding::ternary;
  if (o.compressor == Compressor::four_bit) return Coding::four_bit;
  return o.values == SentValues::f32 ? Coding::full : o.values == SentValues::bf16 ? Coding::bf16 : Coding::two_bit;
}

}  // namespace

double coding_bytes(const CodeLayout& layout, int64_t element, bool velocity) {
  // Passes over the elements, and what each entry costs that is kept: where these are one of a hundred, 19 and 6.5 passes in all.
  const double sparse = layout.by_tensor ? 17 : 5.375, all = layout.coding == Coding::ternary ? 9.75 : 8.25;
  const double passes = (is_sparse(layout.coding) ? sparse : all) + (velocity ? 2 : 0);
  double kept = 0;
  if (is_sparse(layout.coding))
    for (const CodePart& part : layout.parts) kept += static_cast<double>(part.keep);
  return passes * static_cast<double>(layout.elements * element) + (layout.by_tensor ? 800 : 450) * kept;
}

// Each entry touches its own cache line, which is read and written.
double decoding_bytes(const CodeLayout& layout, int64_t element, int ranks) {
  double each = static_cast<double>(layout.bytes), all = 0;
  const auto elements = static_cast<double>(layout.elements * element);
  for (const CodePart& part : layout.parts) each += 128.0 * static_cast<double>(part.keep);
  if (!is_sparse(layout.coding)) {
    all = 2 * elements;
    each += (layout.coding == Coding::ternary ? 2 : 1) * elements;
  }
  return all + ranks * each;
}

double keep_at(const CompressionOptions& o, int64_t update) {
  if (o.compressor != Compressor::top_k) return 1;
  const double power = static_cast<double>(o.keep_warmup) / static_cast<double>(update + 1);
  if (power <= 1) return o.keep;
  return 1 - std::pow(1 - o.keep, power);
}

double gathered_bytes(double code_bytes, int N) { return (N - 1) * code_bytes; }
double all_reduced_bytes(double bytes, int N) { return 2.0 * (N - 1) / N * bytes; }

CompressedExchange::CompressedExchange(const CompressionOptions& options, std::vector<NamedRange> tensors, DType type, int ranks)
    : options_(options), tensors_(std::move(tensors)), type_(type), element_(size_of(type)), ranks_(ranks) {
  for (const NamedRange& t : tensors_) elements_ += t.range.count();
}

// Decides what is sent compressed and what whole.
void CompressedExchange::plan(double keep) {
  if (keep == planned_keep_) return;
  planned_keep_ = keep;
  compressed_.clear();
  whole_.clear();
  const bool compresses = options_.compressor != Compressor::none && ranks_ > 1;
  for (const NamedRange& t : tensors_) (compresses && t.range.count() >= options_.dense_below ? compressed_ : whole_).push_back(t.range);
  const auto lay_out = [&] {
    layout_ = make_layout(coding_of(options_), options_.compressor == Compressor::top_k && options_.select == SelectFrom::tensor,
                          compressed_, keep, type_);
  };
  lay_out();
  const auto dense = static_cast<double>(total(compressed_) * element_), code = static_cast<double>(layout_.bytes);
  if (gathered_bytes(code, ranks_) >= all_reduced_bytes(dense, ranks_)) {
    compressed_.clear();
    whole_.clear();
    for (const NamedRange& t : tensors_) whole_.push_back(t.range);
    lay_out();
  }
  bytes_ =
      gathered_bytes(static_cast<double>(layout_.bytes), ranks_) + all_reduced_bytes(static_cast<double>(total(whole_) * element_), ranks_);
}

void CompressedExchange::start(Worker& w, const Input& input) {
  plan(input.keep);
  if (!bad_) bad_ = working_tensor(w, 1, DType::f64);
  bad_.zero();
  input_ = input;
  rank_ = w.comm().rank();
  if (layout_.bytes > 0) {
    if (codes_.shape() != Shape{ranks_ * layout_.bytes}) codes_ = working_tensor(w, ranks_ * layout_.bytes, DType::i8);
    encode(w);
    pending_codes_ = w.comm().all_gather(codes_);
  }
  if (const int64_t n = total(whole_); n > 0) {
    if (packed_.shape() != Shape{n}) packed_ = working_tensor(w, n, type_);
    pack(w);
    if (ranks_ > 1) pending_whole_ = w.comm().all_reduce(packed_);
  }
}

void CompressedExchange::encode(Worker& w) {
  const Input& in = input_;
  const Compression task{&layout_,
                         in.x,
                         in.residual,
                         in.velocity,
                         options_.residual_decay,
                         options_.momentum_correction,
                         in.local,
                         in.local_scale,
                         codes_.slice(rank_ * layout_.bytes, Shape{layout_.bytes}),
                         bad_};
  w.clock().spend({Work::coding, 0, coding_bytes(layout_, element_, static_cast<bool>(in.velocity))},
                  [&] { w.parameters().backend().compress(task); });
}

std::string CompressedExchange::bad_element() const {
  const auto element = static_cast<int64_t>(number(bad_)) - 1;
  for (const NamedRange& t : tensors_)
    if (element >= t.range.begin && element < t.range.end) return fmt::format("element {} of {}", element - t.range.begin, t.name);
  return "";
}

void CompressedExchange::pack(Worker& w) {
  w.clock().spend({Work::memory, 0, 4.0 * static_cast<double>(packed_.bytes())}, [&] { pack_elements(w.parameters().backend().flat()); });
  if (input_.remember) own_packed_ = packed_.clone();
}

// Sends all of x, residual and velocity.
void CompressedExchange::pack_elements(FlatOps& flat) {
  int64_t at = 0;
  for (const Range& r : whole_) {
    flat.collect(view(input_.x, r), view(input_.residual, r), options_.residual_decay,
                 input_.velocity ? view(input_.velocity, r) : Tensor(), options_.momentum_correction, packed_.slice(at, Shape{r.count()}),
                 r.begin, bad_);
    at += r.count();
  }
}

// to = (or +=) scale * packed, for tensors that were sent whole.
void CompressedExchange::unpack(Worker& w, const Tensor& packed, double scale, Write write, const Tensor& to) const {
  if (whole_.empty()) return;
  w.clock().spend({Work::memory, 0, 2.0 * static_cast<double>(packed.bytes())}, [&] {
    int64_t at = 0;
    for (const Range& r : whole_) {
      w.parameters().backend().flat().scale(packed.slice(at, Shape{r.count()}), scale, view(to, r), write);
      at += r.count();
    }
  });
}

void CompressedExchange::finish(Worker& w, double scale) {
  pending_codes_.wait();
  pending_whole_.wait();
  pending_codes_ = {};
  pending_whole_ = {};
  if (layout_.bytes > 0)
    w.clock().spend({Work::coding, 0, decoding_bytes(layout_, element_, ranks_)},
                    [&] { w.parameters().backend().decompress(layout_, codes_, scale, input_.x); });
  unpack(w, packed_, scale, Write::overwrite, input_.x);
}

void CompressedExchange::add_sent(Worker& w, double scale, const Tensor& y) {
  CHECK(input_.remember, "what this rank sent was not remembered");
  if (layout_.bytes > 0)
    w.clock().spend({Work::coding, 0, decoding_bytes(layout_, element_, 1)}, [&] {
      w.parameters().backend().decompress(layout_, codes_.slice(rank_ * layout_.bytes, Shape{layout_.bytes}), scale, y);
    });
  unpack(w, own_packed_, scale, Write::accumulate, y);
}

}  // namespace starling
