// Everything trainable is flat: values, gradients and each optimizer state are one buffer, named parameters are views of it.
// A parameter that is used as a weight is packed for its matrix products when it is first needed after a change.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace starling {

// A weight packed as (in, out) and transposed, and the version of the values each form was made from. Shared by the views of a model.
struct PackedForms {
  std::mutex mutex;
  std::shared_ptr<Packed> form[2];
  uint64_t version[2] = {0, 0};
};

struct Parameter {
  std::string name;
  Shape shape;
  size_t index = 0;        // in the store
  int64_t offset = 0;      // elements from the start of the flat buffers; a multiple of 16
  Tensor value, gradient;  // views
  std::shared_ptr<PackedForms> packed;
  bool quantized = false;  // matrix products in 8-bit integers: inference only
  double input_bound = 0;  // the largest magnitude of what the weight is multiplied with, where the model bounds it; 0: unknown
};

struct Initializer {
  enum Kind { zeros, ones, glorot, normal, uniform, forget } kind = zeros;
  // glorot: factor on the bound sqrt(6 / (in + out)); normal: standard deviation; uniform: bound; forget: value of an LSTM's forget biases,
  // the second quarter, the rest being zero.
  double scale = 1;
};

class ParameterStore {
 public:
  explicit ParameterStore(Backend& backend) : backend_(backend) {}

  // All additions come before allocate().
  Parameter& add(const std::string& name, const Shape& shape, const Initializer& initializer);
  // Creates the flat buffers; gradients only when `training`. Values are drawn from the seed, or zero without one (to be loaded).
  void allocate(std::optional<uint64_t> seed, bool training);

  // In place of allocate(): the values and packed weights of a store with the same parameters, which must not change while both live.
  void share(const ParameterStore& other);

  Backend& backend() const { return backend_; }
  std::deque<Parameter>& all() { return parameters_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  Parameter* find(const std::string& name);
  int64_t count() const;                                  // parameters, without the padding between them
  const Tensor& values() const { return values_; }        // flat
  const Tensor& gradients() const { return gradients_; }  // flat
  // To be called whenever values change: packed weights are stale from here on.
  void changed() { ++version_; }
  // y = x W with W = value (in, out), or with W = value^T when transposed.
  const Packed& packed(Parameter& p, bool transposed);

 private:
  int64_t flat_count() const;

  Backend& backend_;
  std::deque<Parameter> parameters_;
  std::vector<Initializer> initializers_;
  Tensor values_, gradients_;
  uint64_t version_ = 1;
};

}  // namespace starling
