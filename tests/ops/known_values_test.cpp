// What both backends share, and a comparison of them can therefore not show to be right: the bits of dropout masks and the codes of
// compressed gradients, against numbers written down from their definitions. Blocks of Philox4x32-7 and outputs of SplitMix64 are the
// published ones, masks are a Python program's, codes and what they mean were worked out by hand.
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "backend/backend.h"
#include "backend/dropout.h"
#include "tests/ops/backends.h"

namespace starling {
namespace {

using Bytes = std::vector<uint8_t>;
using Values = std::vector<double>;

// Random123's known answer for philox4x32 with 7 rounds, key 0 and counter 0: 5f6fb709 0d893f64 4f121f81 4f730a48, low half-word first.
TEST(DropoutBits, AreThePublishedBlock) {
  const uint32_t halves[8] = {0xb709, 0x5f6f, 0x3f64, 0x0d89, 0x1f81, 0x4f12, 0x0a48, 0x4f73};
  for (int half = 0; half < 8; ++half) EXPECT_EQ(dropout_bits(0, 0, 0, 16 * half), halves[half]) << half;
}

// Counter (block of the column, position, sentence, 0), key's low word first, as a Python program has it that gives Random123's answers.
TEST(DropoutBits, OfOtherRowsAndColumns) {
  const uint64_t key = 0x299f31d0a4093822;
  for (const auto& [column, bits] : {std::pair(1, 0xaf42u),
                                     {15, 0xffa7u},
                                     {17, 0xbc6du},
                                     {127, 0xbf7du},
                                     {128, 0x82d4u},
                                     {200, 0x595fu},
                                     {511, 0xd96au},
                                     {1023, 0xd226u}})
    EXPECT_EQ(dropout_bits(key, 0x13198a2e, 0x85a308d3, column), bits) << column;
}

// The finaliser is SplitMix64's, whose first outputs for seed 0 are published (Vigna).
TEST(DropoutKey, IsSplitMix64) {
  EXPECT_EQ(dropout_key(1, 0, 0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(dropout_key(2, 0, 0), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(dropout_key(3, 0, 0), 0x06c45d188009454fu);
  EXPECT_EQ(dropout_key(5, 7, 11), 0xefe9594e678a1ec6u);
}

// Bit c of the words is set where column c is kept: where its 16 bits are not below a quarter of 65536.
TEST(DropoutMask, OfARowOnEveryBackend) {
  const uint32_t kept[2][5] = {{0xfefafbff, 0xfbdfdbff, 0xf1faf5f9, 0xb75fffef, 0xeec8fbdd},
                               {0x7fbb727f, 0xf1dfffef, 0xd335dfff, 0xcf83ded3, 0xf7e56e7f}};
  for (const BackendCase& b : kBackends) {
    const auto backend = make(b);
    const RowKeys rows{{std::vector<uint32_t>{0x13198a2e, 1000000}, backend->memory()}, {std::vector<uint32_t>{7, 0}, backend->memory()}};
    const Tensor x({2, 160}, backend->parameter(), backend->memory()), y({2, 160}, backend->parameter(), backend->memory());
    x.from_doubles(Values(320, 3.0));
    backend->add_dropout(Tensor(), x, {0.25, 0x299f31d0a4093822, rows}, y);
    const Values out = y.to_doubles();
    for (size_t i = 0; i < out.size(); ++i) {
      const bool keep = kept[i / 160][i % 160 / 32] >> (i % 32) & 1;
      EXPECT_NEAR(out[i], keep ? 4.0 : 0.0, 1e-6) << b.spec << b.isa << " row " << i / 160 << " column " << i % 160;
    }
  }
}

struct CodeCase {
  const char* name;
  Coding coding;
  bool by_tensor;
  double keep;
  Values x, sent;
  Bytes code;  // f32; what is not written is zero
};

// Elements of a chunk that is zero elsewhere.
Values sparse(size_t size, std::initializer_list<std::pair<size_t, double>> elements) {
  Values v(size);
  for (const auto& [at, value] : elements) v[at] = value;
  return v;
}

const CodeCase kCodes[] = {
    // Of 2 and -2 the first is sent. u16 number; 12-bit indices 1, 4, 6, 9, two in three bytes; f32 values.
    {"full",
     Coding::full,
     false,
     0.4,
     {0.5, -3, 1.25, 0, 8, -0.75, 2, -2, 0.125, 6},
     {0, -3, 0, 0, 8, 0, 2, 0, 0, 6},
     {4, 0, 0x01, 0x40, 0x00, 0x06, 0x90, 0x00, 0, 0, 0x40, 0xC0, 0, 0, 0x00, 0x41, 0, 0, 0x00, 0x40, 0, 0, 0xC0, 0x40}},
    // There is place for 5 of 4096, but only 4 are not zero: 0x001, 0x102, 0x7FF, 0xFFF.
    {"full, large indices",
     Coding::full,
     false,
     5.0 / 4096,
     sparse(4096, {{1, -3}, {0x102, 8}, {0x7FF, 2}, {0xFFF, 6}}),
     sparse(4096, {{1, -3}, {0x102, 8}, {0x7FF, 2}, {0xFFF, 6}}),
     {4, 0, 0x01, 0x20, 0x10, 0xFF, 0xF7, 0xFF, 0, 0, 0x40, 0xC0, 0, 0, 0x00, 0x41, 0, 0, 0x00, 0x40, 0, 0, 0xC0, 0x40}},
    // Two chunks, one choice: both numbers first, then each chunk's indices and values.
    {"full by tensor",
     Coding::full,
     true,
     3.0 / 5000,
     sparse(5000, {{10, 1}, {4095, -2}, {4100, 4}, {4999, 0.5}}),
     sparse(5000, {{10, 1}, {4095, -2}, {4100, 4}}),
     {2, 0, 1, 0, 0x0A, 0xF0, 0xFF, 0, 0, 0x80, 0x3F, 0, 0, 0x00, 0xC0, 0x04, 0x00, 0, 0, 0x80, 0x40}},
    // 1 + 3/256 lies between two bf16 numbers and goes to the even one, 1 + 4/256.
    {"bf16",
     Coding::bf16,
     false,
     0.5,
     {0, -3, 1 + 3.0 / 256, 0.5},
     {0, -3, 1 + 4.0 / 256, 0},
     {2, 0, 0x01, 0x20, 0x00, 0x40, 0xC0, 0x82, 0x3F}},
    // The mean magnitude is 4.75: the levels are the means of 3 and 2, and of 8 and 6. Bits: high, negative.
    {"2-bit",
     Coding::two_bit,
     false,
     4.0 / 4096,
     sparse(4096, {{1, -3}, {0x102, 8}, {0x7FF, 2}, {0xFFF, 6}, {9, 1}}),
     sparse(4096, {{1, -2.5}, {0x102, 7}, {0x7FF, 2.5}, {0xFFF, 7}}),
     {4, 0, 0x20, 0x40, 0xE0, 0x40, 0x01, 0x20, 0x10, 0xFF, 0xF7, 0xFF, 0x89}},
    // The root mean square is 4, the level 1.25 times that, and what is below 2.5 is not sent. Element i is digit i / 2 of byte i % 2, in
    // base 3: 1 = level, 2 = -level.
    {"ternary",
     Coding::ternary,
     false,
     1,
     {8, 1, -8, 5, 0, -2, 1, 0, -1, 0},
     {5, 0, -5, 5, 0, 0, 0, 0, 0, 0},
     {0, 0, 0xA0, 0x40, 1 + 3 * 2, 3 * 1}},
    // The level is at most the largest magnitude, here 1.9375, cut to three binary places.
    {"ternary, one element", Coding::ternary, false, 1, {-1.9375}, {-1.875}, {0, 0, 0xF0, 0x3F, 2}},
    // 6 goes to 8, exponent 3 + 127, code 7; each code less is half of it; 8 is the sign. Element i is in byte i % 5, low half first.
    {"4-bit",
     Coding::four_bit,
     false,
     1,
     {1, -3, 6, 0.75, 0.09375, -0.0625, 2.5, 0, -0.25},
     {1, -4, 8, 1, 0.125, 0, 2, 0, -0.25},
     {0x82, 0x00, 0x04, 0x5E, 0x07, 0xA4, 0x01}},
};

TEST(Codes, AreTheBytesOfTheFormat) {
  for (const BackendCase& b : kBackends) {
    const auto backend = make(b);
    for (const CodeCase& c : kCodes) {
      const auto n = static_cast<int64_t>(c.x.size());
      const CodeLayout layout = make_layout(c.coding, c.by_tensor, {{0, n}}, c.keep, backend->parameter());
      const Tensor x = tensor_of(*backend, c.x), residual = tensor_of(*backend, Values(c.x.size()));
      const Tensor code({layout.bytes}, DType::i8, backend->memory()), bad({1}, DType::f64, backend->memory());
      backend->compress({&layout, x, residual, {}, 1, 0, LocalPart::none, 1, code, bad});
      ASSERT_EQ(bad.to_doubles()[0], 0);
      const Values left = residual.to_doubles();
      for (size_t i = 0; i < c.x.size(); ++i) EXPECT_EQ(left[i], c.x[i] - c.sent[i]) << c.name << " " << i << " " << b.spec << b.isa;
      if (backend->parameter() != DType::f32) continue;  // 8 bytes for a value there
      Bytes expected = c.code;
      expected.resize(static_cast<size_t>(layout.bytes));
      Bytes written(expected.size());
      std::memcpy(written.data(), code.download().data(), written.size());
      EXPECT_EQ(written, expected) << c.name << b.isa;
    }
  }
}

// The bytes above, not the encoder's.
TEST(Codes, AreReadAsTheFormatSays) {
  for (const BackendCase& b : kBackends) {
    const auto backend = make(b);
    if (backend->parameter() != DType::f32) continue;
    for (const CodeCase& c : kCodes) {
      const auto n = static_cast<int64_t>(c.x.size());
      const CodeLayout layout = make_layout(c.coding, c.by_tensor, {{0, n}}, c.keep, DType::f32);
      const Tensor code({layout.bytes}, DType::i8, backend->memory()), sum = tensor_of(*backend, Values(c.x.size(), 1));
      ASSERT_LE(c.code.size(), static_cast<size_t>(layout.bytes)) << c.name;
      Bytes bytes = c.code;
      bytes.resize(static_cast<size_t>(layout.bytes));
      code.upload(std::as_bytes(std::span(bytes)));
      backend->decompress(layout, code, 0.5, sum);
      const Values got = sum.to_doubles();
      for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], 1 + 0.5 * c.sent[i]) << c.name << " " << i << " " << b.isa;
    }
  }
}

}  // namespace
}  // namespace starling
