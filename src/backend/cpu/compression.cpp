// Compression by threads: chunks that each keep their own largest elements, or the largest of a whole tensor.
#include <cmath>
#include <cstring>
#include <functional>

#include "backend/cpu/cpu_backend.h"

namespace starling {
namespace {

// Returns a threshold that is almost certainly below the part.keep-th largest magnitude of a tensor, but not by much, from at most 100,000
// of its elements.
int32_t sampled_threshold(const kernels::CompressionTask& t, int64_t begin, int64_t n, int64_t keep) {
  const int64_t stride = std::max<int64_t>(1, n / 100000) | 1;
  std::vector<float> sample;
  for (int64_t i = begin; i < begin + n; i += stride)
    sample.push_back(std::abs(t.decay * t.residual[i] + t.x[i] + (t.velocity ? t.momentum * t.velocity[i] : 0)));
  const double expected = static_cast<double>(keep) * static_cast<double>(sample.size()) / static_cast<double>(n);
  const auto rank = static_cast<size_t>(1.1 * expected + 4 * std::sqrt(expected) + 4);
  if (rank >= sample.size()) return 1;
  std::nth_element(sample.begin(), sample.begin() + static_cast<int64_t>(rank), sample.end(),
                   [](float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); });
  int32_t bits;
  std::memcpy(&bits, &sample[rank], sizeof bits);
  return std::clamp(bits, 1, 0x7f7fffff);
}

// Returns the keep-th largest magnitude. counts become the numbers of the chunks' entries; `ties` of them lie at that threshold.
int32_t cut(const std::vector<int32_t>& magnitudes, int64_t keep, std::vector<int32_t>& counts, std::vector<int32_t>& ties) {
  std::vector<int32_t> ordered = magnitudes;
  std::nth_element(ordered.begin(), ordered.begin() + keep, ordered.end(), std::greater<>());
  const int32_t next = ordered[static_cast<size_t>(keep)];  // the largest that stays behind
  const int32_t threshold = keep == 0 ? next : *std::min_element(ordered.begin(), ordered.begin() + keep);
  int64_t left = keep - std::count_if(ordered.begin(), ordered.begin() + keep, [&](int32_t m) { return m > threshold; });
  auto m = magnitudes.begin();
  for (size_t c = 0; c < counts.size(); ++c) {
    const auto last = m + counts[c];
    for (counts[c] = 0; m != last; ++m) {
      const bool tie = *m == threshold && left > 0;
      ties[c] += tie;
      left -= tie;
      counts[c] += tie || *m > threshold;
    }
  }
  return threshold;
}

}  // namespace

// Returns the first nonnegative result of f(begin, end, thread) over ranges of chunks, or -1.
template <class F>
int64_t CpuBackend::first_bad(size_t first, size_t last, F f) const {
  std::vector<int64_t> bad(threads_, -1);
  fixed_ranges(static_cast<int64_t>(last - first), 1, [&](int64_t begin, int64_t end, int t) {
    bad[t] = f(first + static_cast<size_t>(begin), first + static_cast<size_t>(end), t);
  });
  for (const int64_t b : bad)
    if (b >= 0) return b;
  return -1;
}

// Collects the magnitudes of at least the threshold, in the order of the chunks, and their number per chunk; again: the residual has
// already been updated.
int64_t CpuBackend::gather(const kernels::CompressionTask& task, const CodePart& part, int32_t threshold, bool again,
                           std::vector<int32_t>& magnitudes, std::vector<int32_t>& counts) const {
  std::vector<std::vector<int32_t>> parts(threads_);
  const int64_t bad = first_bad(part.first, part.last, [&](size_t begin, size_t end, int t) {
    return compression_.gather(task, begin, end, threshold, again, parts[t], counts.data() + (begin - part.first));
  });
  magnitudes.clear();
  for (const auto& p : parts) magnitudes.insert(magnitudes.end(), p.begin(), p.end());
  return bad;
}

// Sends the part.keep largest elements of a tensor: gathers candidates above a low enough threshold, and finds the exact threshold among
// them.
int64_t CpuBackend::compress_tensor(const kernels::CompressionTask& task, const CodePart& part) const {
  const std::vector<CodeChunk>& chunks = task.layout->chunks;
  const size_t first = part.first, n = part.last - part.first;
  if (n == 0) return -1;
  const int64_t begin = chunks[first].begin, end = chunks[part.last - 1].begin + chunks[part.last - 1].count;
  std::vector<int32_t> magnitudes, counts(n), ties(n);
  int32_t threshold = sampled_threshold(task, begin, end - begin, part.keep);
  if (const int64_t bad = gather(task, part, threshold, false, magnitudes, counts); bad >= 0) return bad;
  if (static_cast<int64_t>(magnitudes.size()) < part.keep && threshold > 1)  // the sample was not like the rest
    gather(task, part, threshold = 1, true, magnitudes, counts);
  if (static_cast<int64_t>(magnitudes.size()) > part.keep)
    threshold = cut(magnitudes, part.keep, counts, ties);
  else
    ties = counts;
  for (size_t c = 0; c < n; ++c) put(task.code + chunks[first + c].header, static_cast<uint16_t>(counts[c]));
  const std::vector<int64_t> places = code_places(*task.layout, task.code, part);
  ranges(static_cast<int64_t>(n), 1, [&](int64_t b, int64_t e, int) {
    compression_.send(task, first + static_cast<size_t>(b), first + static_cast<size_t>(e), threshold, ties.data() + b, places.data() + b);
  });
  return -1;
}

void CpuBackend::compress(const Compression& c) {
  const CodeLayout& layout = *c.layout;
  const kernels::CompressionTask task{c.layout,
                                      c.x.data<float>(),
                                      c.residual.data<float>(),
                                      c.velocity ? c.velocity.data<float>() : nullptr,
                                      static_cast<float>(c.decay),
                                      static_cast<float>(c.momentum),
                                      c.local,
                                      static_cast<float>(c.local_scale),
                                      reinterpret_cast<uint8_t*>(c.code.data<int8_t>())};
  if (!layout.by_tensor)
    return note_bad(
        c.bad, first_bad(0, layout.chunks.size(), [&](size_t begin, size_t end, int) { return compression_.compress(task, begin, end); }));
  for (const CodePart& part : layout.parts)
    if (const int64_t bad = compress_tensor(task, part); bad >= 0) return note_bad(c.bad, bad);
}

void CpuBackend::decompress(const CodeLayout& layout, const Tensor& codes, double scale, const Tensor& sum) {
  const auto* code = reinterpret_cast<const uint8_t*>(codes.data<int8_t>());
  std::vector<std::vector<int64_t>> places;
  for (int64_t at = 0; at + layout.bytes <= codes.count() && layout.bytes > 0; at += layout.bytes)
    places.push_back(code_places(layout, code + at));
  ranges(static_cast<int64_t>(layout.chunks.size()), 1, [&](int64_t begin, int64_t end, int) {
    compression_.decompress(layout, code, places, static_cast<float>(scale), sum.data<float>(), static_cast<size_t>(begin),
                            static_cast<size_t>(end));
  });
}

}  // namespace starling
