// Compression, one block per chunk: residual and gradient are added in shared memory, and everything else is done there.
#include "backend/cuda/kernels/chunk.cuh"

namespace starling::STARLING_CUDA::kernels {
namespace {

constexpr int kEach = kChunk / kChunkWarps;  // elements in which a warp looks for entries

struct Room {
  float a[kChunk];  // residual and gradient together
  // The value sent for each element; before that is known, the histogram and a list of entries.
  union {
    float sent[kChunk];
    struct {
      uint32_t histogram[kBins];
      uint16_t chosen[kChunk];
    };
  };
  uint16_t index[kChunk];  // of the entries
  int64_t scratch[kWarp];
  Levels levels;
  float level;
  uint32_t threshold;
  int left, cut, ties;
};

// Writes of(i) to `to`, in order, for every i < n (at most kChunk) with take(i); returns their number. Each warp has `each` of them.
template <class Take, class Of>
__device__ __forceinline__ int list(Room& room, int n, int each, Take take, Of of, uint16_t* to) {
  const int begin = warp() * each;
  int count = 0, total = 0;
  for (int i = begin + lane(); i - lane() < begin + each; i += kWarp) count += __popc(__ballot_sync(kAllLanes, i < n && take(i)));
  int before = sum_before(lane() == 0 ? count : 0, reinterpret_cast<int*>(room.scratch), total);
  before = __shfl_sync(kAllLanes, before, 0);
  for (int i = begin + lane(); i - lane() < begin + each; i += kWarp) {
    const bool taken = i < n && take(i);
    const unsigned all = __ballot_sync(kAllLanes, taken);
    if (taken) to[before + __popc(all & ((1u << lane()) - 1))] = of(i);
    before += __popc(all);
  }
  __syncthreads();
  return total;
}

// The keep-th largest magnitude, how many elements have it, and how many of those are sent.
__device__ __forceinline__ void select(Room& room, const Chunk& at) {
  if (threadIdx.x == 0) {
    room.threshold = at.keep == 0 ? 0x7fffffffu : 0;
    room.left = at.keep;
    room.ties = 0;
  }
  if (at.keep == 0) return __syncthreads();
  for (int shift = 20; shift >= 0; shift -= 10) {
    for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kChunkThreads) room.histogram[b] = 0;
    __syncthreads();
    const uint32_t found = room.threshold;
    const int left = room.left;
    for (int i = static_cast<int>(threadIdx.x); i < at.count; i += kChunkThreads) {
      const uint32_t m = magnitude(room.a[i]);
      if (matches(m, found, shift)) atomicAdd(room.histogram + digit_of(m, shift), 1u);
    }
    __syncthreads();
    pick_digit(room.histogram, left, room.scratch, [&](uint32_t digit, int64_t rest, int64_t number) {
      room.threshold = found | digit << shift;
      room.left = static_cast<int>(rest);
      room.ties = static_cast<int>(number);
    });
    __syncthreads();
  }
}

// The last of the elements at the threshold that is sent: the room.left-th.
__device__ __forceinline__ void find_cut(Room& room, int n) {
  if (room.threshold == 0 || room.left == 0 || room.left == room.ties) {  // zeros are not sent; all of them are
    if (threadIdx.x == 0) room.cut = room.threshold == 0 || room.left == 0 ? -1 : n;
  } else if (warp() == 0) {
    int left = room.left;
    for (int i = lane();; i += kWarp) {
      const unsigned ties = __ballot_sync(kAllLanes, i < n && magnitude(room.a[i]) == room.threshold);
      if (__popc(ties) < left) {
        left -= __popc(ties);
        continue;
      }
      unsigned rest = ties;
      for (; left > 1; --left) rest &= rest - 1;
      if (lane() == 0) room.cut = i + __ffs(static_cast<int>(rest)) - 1;
      break;
    }
  }
  __syncthreads();
}

// The first warp: numbers are added in the order of the entries, as on the CPU, since a last bit may decide on which side of the mean one
// is.
__device__ __forceinline__ void find_levels(Room& room, int n) {
  const auto count = static_cast<double>(n);
  int lows = 0;
  const auto sum_up_to = [&](double most) {
    double sum = 0;
    for (int e = 0; e < n; e += kWarp) {
      const double m = e + lane() < n ? static_cast<double>(fabsf(room.a[room.chosen[e + lane()]])) : 0.0;
      const bool adds = e + lane() < n && m <= most;
      lows += __popc(__ballot_sync(kAllLanes, adds));
      const double share = adds ? m / count : 0.0;
      for (int l = 0; l < kWarp; ++l) sum = __dadd_rn(sum, __shfl_sync(kAllLanes, share, l));
    }
    return sum;
  };
  const double total = sum_up_to(DBL_MAX);
  lows = 0;
  const double low = sum_up_to(total);
  if (lane() != 0) return;
  const auto scaled = [&](double x, int of) { return truncated_bf16(x * (count / static_cast<double>(of))); };
  room.levels.split = total;
  room.levels.low = lows > 0 ? scaled(low, lows) : 0.0f;
  room.levels.high = lows < n ? scaled(total - low, n - lows) : room.levels.low;
}

// Chooses the entries and what they are sent as; returns their number.
__device__ __forceinline__ int choose(Room& room, const Compress& t, const Chunk& at) {
  const Coding coding = t.codes.coding;
  if (!t.codes.by_tensor) {
    select(room, at);
  } else {
    if (threadIdx.x == 0) {
      const int quota = t.ties[blockIdx.x];
      room.threshold = t.thresholds[at.part].bits;
      room.left = quota;
      room.ties = quota;
      if (quota >= 0) room.ties = kChunk + 1;
    }
    __syncthreads();
  }
  find_cut(room, at.count);
  const uint32_t threshold = room.threshold;
  const int cut = room.cut;
  const int chosen = list(
      room, at.count, kEach,
      [&](int i) {
        const uint32_t m = magnitude(room.a[i]);
        return m > threshold || (m == threshold && i <= cut);
      },
      [](int i) { return static_cast<uint16_t>(i); }, room.chosen);
  if (coding == Coding::two_bit) {
    if (warp() == 0 && chosen > 0) find_levels(room, chosen);
    if (threadIdx.x == 0 && chosen == 0) room.levels = {0, 0, 0};
    __syncthreads();
  }
  const auto sends = [&](int e) {
    int bits = 0;
    float sent = 0;
    return coding != Coding::two_bit || two_bit_value(room.levels, room.a[room.chosen[e]], bits, sent);
  };
  const int each = (chosen + kChunkThreads - 1) / kChunkThreads * kWarp;
  const int entries = list(
      room, chosen, each, sends, [&](int e) { return room.chosen[e]; }, room.index);
  for (int i = static_cast<int>(threadIdx.x); i < at.count; i += kChunkThreads) room.sent[i] = 0;
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < entries; e += kChunkThreads) {
    const float x = room.a[room.index[e]];
    float sent = coding == Coding::bf16 ? sendable_bf16(x) : x;
    int bits = 0;
    if (coding == Coding::two_bit) two_bit_value(room.levels, x, bits, sent);
    room.sent[room.index[e]] = sent;
  }
  return entries;
}

// Byte b of a chunk's entries.
__device__ __forceinline__ int entry_byte(const Room& room, Coding coding, int entries, int b) {
  if (coding == Coding::two_bit) {
    if (b < 4) return static_cast<int>(__float_as_uint(b < 2 ? room.levels.low : room.levels.high) >> (16 + b % 2 * 8));
    b -= 4;
  }
  const int list_bytes = static_cast<int>(index_bytes(entries));
  if (b < list_bytes) {
    const int e = b / 3 * 2, first = room.index[e], second = e + 1 < entries ? room.index[e + 1] : 0;
    return (first | second << 12) >> b % 3 * 8;
  }
  b -= list_bytes;
  if (coding == Coding::full) return static_cast<int>(__float_as_uint(room.sent[room.index[b / 4]]) >> b % 4 * 8);
  if (coding == Coding::bf16) return static_cast<int>(__float_as_uint(room.sent[room.index[b / 2]]) >> (16 + b % 2 * 8));
  int all = 0;
  for (int i = 0; i < 4 && 4 * b + i < entries; ++i) {
    int bits = 0;
    float sent = 0;
    two_bit_value(room.levels, room.a[room.index[4 * b + i]], bits, sent);
    all |= bits << 2 * i;
  }
  return all;
}

// 1.25 times the root mean square, at most the largest magnitude, cut to four significant bits. Sixteen lanes each add up every sixteenth
// square, as on the CPU.
__device__ __forceinline__ void find_ternary_level(Room& room, int n, uint32_t largest) {
  if (warp() == 0) {
    double part = 0, squares = 0;
    for (int i = lane(); lane() < 16 && i < n; i += 16) part += static_cast<double>(room.a[i]) * static_cast<double>(room.a[i]);
    for (int l = 0; l < 16; ++l) squares += __shfl_sync(kAllLanes, part, l);
    const double most = static_cast<double>(__uint_as_float(largest)), exact = 1.25 * sqrt(squares / static_cast<double>(n));
    if (lane() == 0) room.level = __uint_as_float(__float_as_uint(static_cast<float>(most < exact ? most : exact)) & 0x7ff00000u);
  }
  __syncthreads();
}
// How an element is sent: 1 = the level, 2 = its negative.
__device__ __forceinline__ int ternary_digit(float a, float level) {
  const float s = a < 0 ? -level : level;
  const bool sends = fabsf(a) >= level / 2 && __fsub_rn(a, __fsub_rn(a, s)) == s;
  return sends ? (a < 0 ? 2 : 1) : 0;
}

// The nearest power of two as a biased exponent; 0 below half of the smallest normal number.
__device__ __forceinline__ int nearest_power(uint32_t magnitude) {
  const auto power = static_cast<int>((magnitude + 0x00400000u) >> 23);
  return power < 254 ? power : 254;
}
__device__ __forceinline__ int four_bit_digit(float a, int top) {
  const int power = nearest_power(magnitude(a)), code = power == 0 || power - top + 7 < 0 ? 0 : power - top + 7;
  return code == 0 ? 0 : code | (a < 0 ? 8 : 0);
}

// Every element of a chunk as a digit.
__device__ __forceinline__ void write_digits(Room& room, const Compress& t, const Chunk& at, uint32_t largest, uint8_t* to) {
  const int n = at.count;
  if (t.codes.coding == Coding::ternary) {
    find_ternary_level(room, n, largest);
    const float level = room.level;
    const int bytes = (n + 4) / 5;
    for (int b = static_cast<int>(threadIdx.x); b < 4 + bytes; b += kChunkThreads) {
      int byte = 0;
      for (int i = b - 4, unit = 1; b >= 4 && i < n; i += bytes, unit *= 3) byte += unit * ternary_digit(room.a[i], level);
      to[b] = static_cast<uint8_t>(b < 4 ? __float_as_uint(level) >> b * 8 : static_cast<uint32_t>(byte));
    }
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kChunkThreads) {
      const int digit = ternary_digit(room.a[i], level);
      room.sent[i] = digit == 0 ? 0.0f : digit == 1 ? level : -level;
    }
    return;
  }
  const int top = nearest_power(largest), bytes = (n + 1) / 2;
  if (threadIdx.x == 0) put_u16(to, top);
  for (int b = static_cast<int>(threadIdx.x); b < bytes; b += kChunkThreads)
    to[2 + b] = static_cast<uint8_t>(four_bit_digit(room.a[b], top) | (b + bytes < n ? four_bit_digit(room.a[b + bytes], top) << 4 : 0));
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kChunkThreads) {
    const uint32_t bits = __float_as_uint(room.a[i]);
    const bool some = four_bit_digit(room.a[i], top) != 0;
    room.sent[i] = some ? __uint_as_float((bits & 0x80000000u) | static_cast<uint32_t>(nearest_power(bits & 0x7fffffffu)) << 23) : 0.0f;
  }
}

__global__ void __launch_bounds__(kChunkThreads, 4) compress_kernel(Compress t) {
  Room& room = *shared<Room>();
  const Chunk at = t.codes.chunks[blockIdx.x];
  const Coding coding = t.codes.coding;
  uint32_t largest = 0;
  int64_t bad = -1;
  for (int i = static_cast<int>(threadIdx.x); i < at.count; i += kChunkThreads) {
    room.a[i] = t.codes.by_tensor ? t.residual[at.begin + i] : add_up(t, at.begin + i);
    const uint32_t m = magnitude(room.a[i]);
    if (m > largest) largest = m;
    if (m >= kNotFinite) bad = at.begin + i;
  }
  if (bad >= 0) raise_to(t.bad, static_cast<double>(bad + 1));
  largest = block_reduce(largest, Largest{}, reinterpret_cast<uint32_t*>(room.scratch));
  if (largest >= kNotFinite) return;
  if (is_sparse(coding)) {
    const int entries = choose(room, t, at);
    __syncthreads();
    uint8_t* const to = t.code + (t.codes.by_tensor ? t.codes.places[blockIdx.x] : at.place);
    if (threadIdx.x == 0) put_u16(t.code + at.header, entries);
    for (int b = static_cast<int>(threadIdx.x); b < chunk_bytes(coding, entries); b += kChunkThreads)
      to[b] = static_cast<uint8_t>(entry_byte(room, coding, entries, b));
  } else {
    write_digits(room, t, at, largest, t.code + at.place);
    __syncthreads();
  }
  for (int i = static_cast<int>(threadIdx.x); i < at.count; i += kChunkThreads) {
    const float s = room.sent[i], rest = __fsub_rn(room.a[i], s);
    float& x = t.x[at.begin + i];
    t.residual[at.begin + i] = rest;
    if (t.velocity && s != 0) t.velocity[at.begin + i] = 0;
    x = t.local == LocalPart::none                ? 0.0f
        : t.local == LocalPart::error             ? t.local_scale * rest
        : t.local == LocalPart::partial && s != 0 ? x - s
                                                  : t.local_scale * x;
  }
}

}  // namespace

void compress(const Compress& t, cudaStream_t stream) {
  if (t.codes.by_tensor) find_thresholds(t, stream);
  launch(compress_kernel, t.codes.chunk_count, kChunkThreads, sizeof(Room), stream, t);
}

}  // namespace starling::STARLING_CUDA::kernels
