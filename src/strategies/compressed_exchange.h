// Sums compressed vectors over the ranks, with error feedback: each rank sends a code of its own vector and residual in one all-gather and
// adds up what all have sent in the order of the ranks, so that all get the same bits. Small tensors are sent whole, in one all-reduce; so
// is everything if codes would take more bytes than an all-reduce. Used for gradients and for displacements.
#pragma once

#include <string>
#include <vector>

#include "backend/compression.h"
#include "strategies/compression_options.h"
#include "strategies/worker.h"

namespace starling {

struct NamedRange {
  std::string name;  // for messages
  Range range;       // of the flat vector
};

// The density at update t = 0, 1, ... of the exchange.
double keep_at(const CompressionOptions& options, int64_t update);

// Work of coding a gradient, and of adding up the codes of that many ranks, as the bytes of memory traffic that would take as long.
// Measured by bench_compression on one thread beside its moving average.
double coding_bytes(const CodeLayout& layout, int64_t element, bool velocity);
double decoding_bytes(const CodeLayout& layout, int64_t element, int ranks);

// The bytes that a rank sends: for codes of that many bytes gathered among N ranks, and for a ring all-reduce.
double gathered_bytes(double code_bytes, int N);
double all_reduced_bytes(double bytes, int N);

class CompressedExchange {
 public:
  // tensors: parts of the flat vectors, ascending and without overlap; what lies between them is left alone. type: f32 or f64. With one
  // rank, or with compressor none, everything is sent whole.
  CompressedExchange(const CompressionOptions& options, std::vector<NamedRange> tensors, DType type, int ranks);

  struct Input {
    Tensor x;         // flat; in: this rank's vector; out, before finish: its local part
    Tensor residual;  // flat, updated; compressed is x + residual-decay * residual
    Tensor velocity;  // flat, updated, or empty: without momentum-correction
    double keep = 1;  // as keep_at says, the same on all ranks
    LocalPart local = LocalPart::none;
    double local_scale = 1;
    bool remember = false;  // for add_sent
  };
  // Compresses and starts the exchange; x must stay untouched until finish. Collective.
  void start(Worker& w, const Input& input);
  // Returns a description of a number of this rank that is not finite in what was started last ("element 3 of bias"), or "". The exchange
  // continues all the same, but its result is worthless, so all ranks have to give up. Waits for the coding.
  [[nodiscard]] std::string bad_element() const;
  // Waits, then x += scale * the sum over ranks of what was sent. Tensors that were sent whole have no local part: x = scale * sum.
  void finish(Worker& w, double scale = 1);
  // y += scale * what this rank sent in the exchange finished last, which must have had `remember` set.
  void add_sent(Worker& w, double scale, const Tensor& y);

  // By the closed form: the bytes that this rank sent in the last exchange, or would send at this density, and those of an all-reduce.
  double bytes() const { return bytes_; }
  double planned_bytes(double keep) {
    plan(keep);
    return bytes_;
  }
  double dense_bytes() const { return all_reduced_bytes(static_cast<double>(elements_ * element_), ranks_); }

 private:
  void plan(double keep);
  void encode(Worker& w);
  void pack(Worker& w);
  void unpack(Worker& w, const Tensor& packed, double scale, Write write, const Tensor& to) const;
  void pack_elements(FlatOps& flat);

  CompressionOptions options_;
  std::vector<NamedRange> tensors_;
  DType type_;
  int64_t element_ = 4, elements_ = 0;
  int ranks_ = 1;

  double planned_keep_ = -1;
  std::vector<Range> compressed_, whole_;
  CodeLayout layout_;
  Tensor codes_;  // i8 [ranks * layout.bytes]
  Tensor bad_;    // f64 [1], as in Compression
  Tensor packed_, own_packed_;
  Input input_;
  Pending pending_codes_, pending_whole_;
  int rank_ = 0;
  double bytes_ = 0;
};

}  // namespace starling
