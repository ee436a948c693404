// The op case table: every backend op with shapes that reach its tails, run alike by the parity test (each backend against the
// double-precision reference), the gradient check and the micro-benchmark.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/random.h"

namespace starling {

// Every activation with a name for test cases.
inline std::vector<std::pair<std::string, Activation>> all_activations() {
  std::vector<std::pair<std::string, Activation>> all = {{"none", Activation::none}};
  for (std::string word : words(Activation{})) {
    const auto activation = static_cast<Activation>(all.size() - 1);
    std::replace(word.begin(), word.end(), '-', '_');
    all.emplace_back(word, activation);
  }
  return all;
}

// Makes a case's inputs (seeded, rounded to bf16 so that every backend starts from equal numbers) and collects its outputs.
class CaseContext {
 public:
  CaseContext(Backend& backend, uint64_t seed) : backend(backend), random_(seed, 7) {}

  Tensor activations(const Shape& shape, double scale = 1) { return fill(shape, backend.activation(), scale); }
  Tensor parameters(const Shape& shape, double scale = 1) { return fill(shape, backend.parameter(), scale); }
  // For outputs: not a number where an op leaves something out.
  Tensor empty(const Shape& shape) { return unwritten(shape, backend.activation()); }
  Tensor empty_parameters(const Shape& shape) { return unwritten(shape, backend.parameter()); }
  std::vector<int32_t> integers(int64_t n, int64_t below) {
    std::vector<int32_t> v(n);
    for (auto& x : v) x = static_cast<int32_t>(random_.below(below));
    return v;
  }
  // Numbers where the backend's ops read them.
  template <class T>
  HostDeviceArray<T> upload(std::vector<T> numbers) {
    return {std::move(numbers), backend.memory()};
  }
  RowKeys keys(int64_t rows) {
    std::vector<uint32_t> sentence, position;
    for (int64_t n = 0; n < rows; ++n) sentence.push_back(100 + n / 5), position.push_back(n % 5);
    return {upload(sentence), upload(position)};
  }
  void output(const Tensor& t) { outputs.push_back(t.to_doubles()); }

  Backend& backend;
  std::vector<std::vector<double>> outputs;

 private:
  Tensor unwritten(const Shape& shape, DType dtype) {
    Tensor t(shape, dtype, backend.memory());
    t.from_doubles(std::vector<double>(static_cast<size_t>(shape.count()), std::nan("")));
    return t;
  }
  Tensor fill(const Shape& shape, DType dtype, double scale) {
    std::vector<double> values(shape.count());
    for (double& v : values) v = widen(round_to_bf16(static_cast<float>(scale * random_.normal())));
    Tensor t(shape, dtype, backend.memory());
    t.from_doubles(values);
    return t;
  }
  Random random_;
};

struct OpCase {
  std::string name;
  std::function<void(CaseContext&)> run;
};

// All cases.
std::vector<OpCase> op_cases();
// Those of activations, recurrent units and embeddings of nothing, which are among them (layer_cases.cpp).
void add_layer_cases(std::vector<OpCase>& cases);
// Those of attention (attention_cases.cpp).
void add_attention_cases(std::vector<OpCase>& cases);

// A name with the case's sizes.
inline std::string case_name(const char* name, std::initializer_list<int64_t> dims) {
  std::string s = name;
  for (int64_t d : dims) s += "_" + std::to_string(d);
  return s;
}
inline Dropout case_dropout(CaseContext& c, double p, int64_t rows) { return {p, 0x123456789abcull, c.keys(rows)}; }

}  // namespace starling
