// The arithmetic of strategies on an emulated card and on the host: the same bits.
#include "backend/flat.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "backend/backend.h"
#include "base/random.h"

namespace starling {
namespace {

constexpr int64_t kMany = 20011;

using Values = std::vector<double>;

class CudaFlat : public testing::Test {
 protected:
  // Makes tensors in one memory, equal ones for equal streams.
  struct Maker {
    Memory& memory;
    std::vector<Tensor> made{};
    Tensor operator()(uint64_t stream, const Shape& shape = {kMany}) {
      Random random(7, stream);
      Values values(static_cast<size_t>(shape.count()));
      for (double& v : values) v = static_cast<float>(random.normal());
      return put(shape, values);
    }
    Tensor put(const Shape& shape, const Values& values, DType type = DType::f32) {
      made.emplace_back(shape, type, memory);
      made.back().from_doubles(values);
      return made.back();
    }
    Ints place(std::vector<int32_t> numbers) const { return {std::move(numbers), memory}; }
  };
  // All that the body has made is equal afterwards.
  void compare(const std::function<void(FlatOps&, Maker&)>& body) {
    Maker here{host_memory()}, there{card->memory()};
    body(*make_host_flat_ops(1), here), body(card->flat(), there);
    ASSERT_FALSE(here.made.empty());
    for (size_t k = 0; k < here.made.size(); ++k) {
      ASSERT_EQ(here.made[k].count(), there.made[k].count());
      EXPECT_EQ(here.made[k].download(), there.made[k].download()) << "tensor " << k;
    }
  }
  std::unique_ptr<Backend> card = make_backend("cuda-emulated:f32");
};

// Four at a time where all is aligned to that, else one by one: the same bits, of lengths that leave every remainder.
TEST_F(CudaFlat, OfAnyAlignmentAndLength) {
  for (int64_t n = 1024; n < 1028; ++n)
    for (const int64_t first : {1, 2, 4}) {
      const auto numbers = [&](uint64_t stream, int64_t begin) {
        const Tensor whole({n + 4}, DType::f32, card->memory()), here = whole.slice(begin, {n});
        Random random(7, stream);
        Values values(static_cast<size_t>(n));
        for (double& v : values) v = std::abs(random.normal());
        here.from_doubles(values);
        return here;
      };
      const auto results = [&](int64_t begin) {
        const Tensor value = numbers(1, begin), gradient = numbers(2, begin), x = numbers(5, begin);
        const StepStates states{numbers(3, begin), numbers(4, begin)};
        card->optimizer_step(value, gradient, states, AdamStep{0.1, 0.9, 0.98, 1e-8, 0.01, true, 0.5, 3});
        card->moving_average(value, gradient, 0.9);
        card->flat().divide(x, 3), card->flat().scale(x, 0.3, states[0], Write::accumulate);
        std::vector<std::vector<std::byte>> bytes;
        for (const Tensor& t : {value, gradient, states[0], states[1], x}) bytes.push_back(t.download());
        return bytes;
      };
      EXPECT_EQ(results(first), results(0)) << n << " numbers from " << first;
    }
}

// Every number of bf16 and what lies just below, at and just above half of the way to the next, in pairs and one by one: an odd number of
// elements has an end that no pair holds. What is no number stays that.
TEST_F(CudaFlat, RoundsToBf16AsTheProcessorDoes) {
  std::vector<float> wide;
  for (uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const uint32_t lower : {0x0000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const uint32_t bits = upper << 16 | lower;
      wide.push_back(std::bit_cast<float>(bits));
    }
  for (const size_t count : {wide.size(), wide.size() - 1, size_t{7}}) {
    const auto n = static_cast<int64_t>(count);
    const Tensor x({n}, DType::f32, card->memory()), y({n}, DType::bf16, card->memory());
    card->memory().upload(x.raw(), reinterpret_cast<const std::byte*>(wide.data()), x.bytes());
    card->flat().convert(x, y);
    std::vector<bf16> got(count);
    y.read<bf16>(got);
    for (size_t i = 0; i < count; ++i) {
      if (std::isnan(wide[i]))
        ASSERT_TRUE(std::isnan(widen(got[i]))) << i;
      else
        ASSERT_EQ(got[i].bits, round_to_bf16(wide[i]).bits) << wide[i];
    }
  }
}

TEST_F(CudaFlat, ElementByElement) {
  compare([](FlatOps& f, Maker& m) {
    f.divide(m(1), 3);
    f.scale(m(2), 0.3, m(3), Write::overwrite), f.scale(m(4), -1.7, m(5), Write::accumulate);
    const Tensor own = m(6);
    f.scale(own, 1.1, own, Write::accumulate);
    f.compensate(m(7), m(8), m(9), 0.7);
    f.displacement({.value = m(10), .merged = m(11), .step = m(12), .momentum = 0.9, .displacement = m(13), .sent = m(14)});
    f.displacement({.value = m(15), .merged = m(16), .step = {}, .displacement = m(17), .sent = {}});
    f.displacement({.value = m(15), .merged = m(16), .step = m(18), .momentum = 0, .displacement = m(17), .sent = {}});
  });
}

TEST_F(CudaFlat, OuterSteps) {
  for (const double momentum : {0.0, 0.9})
    for (const double anchor : {0.0, 0.8})
      for (const double ahead : {0.0, 0.7})
        for (const char* form : {"start", "corrected", "mixture"})
          compare([&](FlatOps& f, Maker& m) {
            OuterStep o{.sum = m(1), .value = m(2), .merged = m(3), .step = {}, .sent = {}, .rate = 0.3, .momentum = momentum};
            o.anchor = anchor, o.ahead = ahead, o.corrected = std::string(form) == "corrected", o.keep = 0.3;
            if (momentum > 0) o.step = m(4);
            if (std::string(form) != "start") o.sent = m(5);
            f.outer_step(o);
          });
}

TEST_F(CudaFlat, CollectTakesEverythingAndNamesWhatIsNotFinite) {
  compare([](FlatOps& f, Maker& m) {
    f.collect(m(1), m(2), 0.7, m(3), 0.9, m(4), 0, m.put({1}, {0}, DType::f64));
    f.collect(m(5), m(6), 0.7, {}, 0.9, m(7), 0, m.put({1}, {0}, DType::f64));
  });
  for (const double bad : {double{INFINITY}, -double{INFINITY}, std::nan("")}) {
    Maker m{card->memory()};
    Values values = m(1).to_doubles();
    values[17003] = bad;
    const Tensor at = m.put({1}, {0}, DType::f64);
    card->flat().collect(m.put({kMany}, values), m(2), 1, {}, 0, m(3), 500, at);
    EXPECT_EQ(at.to_doubles()[0], 500 + 17003 + 1);
  }
}

// Sums in order: of pieces and of less than one, and of nothing.
TEST_F(CudaFlat, SumsInOrder) {
  for (const int64_t n : {kMany, int64_t{4096}, int64_t{1}, int64_t{0}})
    compare([&](FlatOps& f, Maker& m) { f.squares_in_order(m(1, {n}), m.put({1}, {3}, DType::f64)); });
}

TEST_F(CudaFlat, TheLossAlongLinks) {
  for (const size_t links : {size_t{0}, size_t{1}, size_t{700}})
    compare([&](FlatOps& f, Maker& m) {
      std::vector<int32_t> place;
      std::vector<float> weight;
      Values values;
      for (size_t i = 0; i < 1500; ++i) values.push_back(i % 7 == 0 ? 0 : 1.0 / static_cast<double>(i + 1));
      for (size_t l = 0; l < links; ++l)
        place.push_back(static_cast<int32_t>(2 * l)), weight.push_back(0.25f * static_cast<float>(1 + l % 5));
      const Tensor sum({1}, DType::f64, m.memory), dp = m(1, {1500});
      sum.zero();
      f.link_loss(m.put({1500}, values), m.place(place), HostDeviceArray<float>(weight, m.memory), dp, sum);
      double expected = 0;
      for (size_t l = 0; l < links; ++l)
        expected -= weight[l] * std::log(std::max(static_cast<float>(values[static_cast<size_t>(place[l])]), 1e-30f));
      EXPECT_NEAR(sum.to_doubles()[0], expected, 1e-9 * std::max(1.0, expected));
    });
}

TEST_F(CudaFlat, VectorsOfAGivenLengthAndTheirGradients) {
  compare([](FlatOps& f, Maker& m) {
    const Tensor scale = m.put({1}, {-1.7});
    f.rescale(m(1), scale, m(2));
    f.rescale_backward(m(3), m(4), scale, m(5), m.put({1}, {2}), Write::overwrite);
    f.rescale_backward(m(6), m(7), scale, m(8), m.put({1}, {2}), Write::accumulate);
    f.rescale(m.put({3}, {0, 0, 0}), scale, m(9, {3}));
  });
}

TEST_F(CudaFlat, ConvertRoundsToNearestEven) {
  compare([](FlatOps& f, Maker& m) {
    const Tensor narrow = m.put({kMany}, Values(kMany), DType::bf16);
    f.convert(m(1), narrow), f.convert(narrow, m(2));
  });
}

TEST_F(CudaFlat, RowsOnTheWire) {
  for (const auto& [front, D] : {std::pair<int64_t, int64_t>{1, 1}, {2, 70}, {16, 33}})
    compare([&, front = front, D = D](FlatOps& f, Maker& m) {
      Random random(9, 1);
      std::vector<int32_t> rows(150), numbers(150), places(150);
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<int32_t>(random.below(40)), numbers[i] = static_cast<int32_t>(random.below(i < 75 ? 60 : 7));
        places[i] = static_cast<int32_t>(random.below(i < 75 ? 150 : 3));  // many to the same row
      }
      const Tensor x = m(1, {40, D}), wire = m(2, {150, front + D}), own = m(3, {150, front + D}), table = m(4, {60, D});
      f.pack_rows(x, m.place(rows), m.place(numbers), front, wire);
      f.pack_rows(m(5, {150, D}), {}, m.place(numbers), front, own);
      f.add_to_rows(m(6, {150, D}), m.place(places), m(7, {150, D}));
      f.add_rows(wire, front, table), f.add_rows(own, front, table);
      f.pack_rows(m(11, {0, D}), {}, {}, front, m(8, {0, front + D})), f.add_to_rows(m(9, {0, D}), {}, table);
      f.add_rows(m(10, {0, front + D}), front, table);
    });
}

TEST_F(CudaFlat, RowsWithoutNumbers) {
  for (const int64_t D : {1, 33, 300})
    compare([&, D = D](FlatOps& f, Maker& m) {
      std::vector<int32_t> rows(70);
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i * 7 % 90);
      const Tensor x = m(1, {90, D}), y = m(2, {70, D});
      f.pack_rows(x, m.place(rows), m.place(rows), 0, y);
    });
}

TEST_F(CudaFlat, ARowThatIsNotThereIsTheErrorThatItIsOnTheHost) {
  const auto error = [](FlatOps& flat, Memory& memory, double number) {
    Maker m{memory};
    const Tensor wire = m.put({3, 4}, {0, 1, 5, 6, number, 1, 7, 8, 2, 1, 9, 9}), x = m(2, {4, 2});
    try {
      flat.add_rows(wire, 2, x);
    } catch (const Error& e) {
      const std::string text = e.what();
      return text.substr(text.find("failed: "));
    }
    return std::string("no error");
  };
  const auto host = make_host_flat_ops(1);
  EXPECT_EQ(error(card->flat(), card->memory(), 3), "no error");
  const std::string said = error(card->flat(), card->memory(), 4);
  EXPECT_NE(said.find("row 4 of 4"), std::string::npos) << said;
  EXPECT_EQ(said, error(*host, host_memory(), 4));
  EXPECT_NE(error(card->flat(), card->memory(), std::nan("")).find("row -1 of 4"), std::string::npos);
}

}  // namespace
}  // namespace starling
