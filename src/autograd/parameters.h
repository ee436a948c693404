// Everything trainable is flat: values, gradients and each optimizer state are one buffer each, and named parameters are views of them. A
// parameter that is used as a weight is packed for its matrix products when it is first needed after a change.
//
// A model declares its parameters unit by unit; a unit is a piece of its forward pass, such as a layer. The store of a pipeline stage
// covers only some of the units: it owns the parameters that these declare, keeps copies of those that they share with earlier units, and
// knows only the names and shapes of the rest. If the units are sharded, it holds its shard of each parameter that is cut; a parameter that
// is not cut is owned by the first worker of the group and copied by the others. A unit may also be on every stage: each stage then has
// copies of its parameters and owns a part of each.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/range.h"
#include "tensor/shard_group.h"

namespace starling {

// A weight packed as (in, out) and transposed, with the version of the values that each form was made from. All views of a model share it.
struct PackedForms {
  std::mutex mutex;
  std::shared_ptr<Packed> form[2];
  uint64_t version[2] = {0, 0};
};

struct Parameter {
  enum Hold : uint8_t {
    owned,   // a view of the flat buffers
    copied,  // another worker owns and updates it
    absent   // its units are not in the store
  };
  std::string name;
  Shape shape;       // of this worker's shard
  Shape whole;       // of the whole parameter
  Cut cut;           // how it is cut if units are sharded
  size_t index = 0;  // in the order of declaration
  Hold hold = owned;
  std::vector<size_t> units;  // that use it; the one that declares it comes first
  int64_t offset = 0;         // elements from the start of the flat buffers; a multiple of 16
  Tensor value, gradient;     // empty when absent
  std::shared_ptr<PackedForms> packed;
  // Set if this is the owned part of a parameter that every stage has a copy of: elements [first, first + shape.count()) of that copy. The
  // copy is the declared parameter, of the same name and index; the part is among those that the store owns.
  const Parameter* copy = nullptr;
  int64_t first = 0;
  bool quantized = false;  // matrix products in 8-bit integers: inference only
  double input_bound = 0;  // the largest magnitude of the weight's input, if the model bounds it; 0: unknown
};

struct Initializer {
  enum Kind { zeros, ones, glorot, normal, uniform, forget } kind = zeros;
  // glorot: factor on the bound sqrt(6 / (in + out)); normal: standard deviation; uniform: bound; forget: value of an LSTM's forget biases,
  // which are the second quarter; the rest is zero.
  double scale = 1;
};

// Units [begin, end) of a model.
struct UnitRange {
  size_t begin = 0, end = static_cast<size_t>(-1);
  // A further unit that every stage has; this stage owns part `part` of `parts` of its parameters.
  size_t everywhere = static_cast<size_t>(-1);
  int part = 0, parts = 1;
  bool in_range(size_t unit) const { return begin <= unit && unit < end; }
  bool has(size_t unit) const { return in_range(unit) || unit == everywhere; }
};

// The part of a model that a worker holds: some of the units, or its shard of each of them.
struct ModelPart {
  ModelPart(const UnitRange& units = {}, ShardGroup* shards = nullptr) : units(units), shards(is_spread(shards) ? shards : nullptr) {}
  UnitRange units;
  ShardGroup* shards;  // null: units are whole
};

// Declares, allocates and holds the parameters of a model, or of a worker's part of one.
class ParameterStore {
 public:
  explicit ParameterStore(Backend& backend, const ModelPart& part = {}) : backend_(backend), part_(part) {}

  // All parameters are added before allocate(), in the order of the forward pass. They belong to the unit begun last.
  void begin_unit(size_t unit) { unit_ = unit; }
  // shape: of the whole parameter; cut: how it is cut if the store's units are sharded.
  Parameter& add(const std::string& name, const Shape& shape, const Initializer& initializer, const Cut& cut = {});
  // Declares that this unit also uses a parameter of an earlier one.
  Parameter& share(Parameter& parameter);
  // Creates the flat buffers; gradients only when `training`. Values are drawn from the seed, or zero without one (to be loaded).
  void allocate(std::optional<uint64_t> seed, bool training);

  // Replaces allocate(): takes the values and packed weights of a store with the same parameters, which must not change while both live.
  void view(const ParameterStore& other);

  Backend& backend() const { return backend_; }
  const ModelPart& part() const { return part_; }
  const UnitRange& units() const { return part_.units; }
  ShardGroup* shards() const { return part_.shards; }
  // Whether this store holds only a shard of the parameter.
  bool is_cut(const Parameter& p) const { return part_.shards && p.cut.axis >= 0; }
  // The elements of the whole parameter that this store holds, ascending.
  std::vector<Range> local_ranges(const Parameter& p) const;
  // Where this worker's part of each block begins: its first column, head or token.
  int64_t first_here(const Parameter& p) const;
  // The parameters that the store owns, in flat order; its parts of parameters that every stage has come first.
  std::deque<Parameter>& all() { return parameters_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  // All parameters of the model, by index.
  const std::vector<Parameter*>& declared() const { return declared_; }
  Parameter* find(const std::string& name);
  int64_t count() const;           // owned parameters, without the padding between them
  int64_t declared_count() const;  // of the model, whole
  // Flat. If some may still be in transit, call wait_for_parameters() first; reading them here before that is an error.
  const Tensor& values() const {
    CHECK(!expects(), "parameters are read while some of them are still on their way from other ranks");
    return values_;
  }
  // The number of elements of values(), which is known even while some are in transit.
  int64_t flat_count() const { return values_.count(); }
  // Waits until everything expected has arrived. This may exchange messages, so all ranks must call it at the same place.
  void wait_for_parameters() const {
    if (const auto all = expected_.all) all();  // a copy, since it ends by expect({})
  }
  const Tensor& gradients() const { return gradients_; }  // flat
  // The part that the store owns of a parameter that every stage has a copy of; null if it owns nothing of it.
  const Parameter* part_of(const Parameter& copy) const;
  // The elements that the store owns of a declared parameter, in the flat buffer; empty if none.
  Tensor owned_value(const Parameter& declared) const;
  // Copies the values of the parts from the copies, after those were loaded.
  void take_parts();
  // Declares that some values are in transit from other ranks: `all` waits for all of them, `unit` for those of one unit. Once the last has
  // arrived, expect({}) ends this. A forward pass calls reach() before it reads a unit's parameters; reach() waits for all of them unless
  // on_reach() has set another way.
  struct Expected {
    std::function<void()> all;
    std::function<void(size_t unit)> unit;
  };
  void expect(Expected expected) { expected_ = std::move(expected); }
  bool expects() const { return expected_.all != nullptr; }
  void arrive(size_t unit) const {
    if (const auto wait = expected_.unit) wait(unit);
  }
  void on_reach(std::function<void(size_t unit)> reached) { reached_ = std::move(reached); }
  void reach(size_t unit) const {
    if (reached_) {
      reached_(unit);
    } else {
      wait_for_parameters();
    }
  }
  // Must be called whenever values change: packed weights are stale afterwards.
  void changed() { ++version_; }
  bool training() const { return training_; }  // has gradients, or is a view of one that has
  // What decoding rounds row counts up to a multiple of, so that its products have few different ones. Shards sum rows, so all of them
  // round in the same way, whatever their backends prefer.
  int64_t row_multiple(int64_t rows) const {
    if (shards()) return Backend::coarse_row_multiple(rows);
    const int64_t own = backend_.row_multiple(rows);
    return training_ ? std::max(own, backend_.Backend::row_multiple(rows)) : own;
  }
  // The packed weight of y = x W with W = value (in, out), or with W = value^T if transposed.
  const Packed& packed(Parameter& p, bool transposed);

 private:
  int64_t lay_out();
  void add_part(const Parameter& copy);
  void draw(const Parameter& p, uint64_t seed) const;

  Backend& backend_;
  ModelPart part_;
  size_t unit_ = 0;
  std::deque<Parameter> parameters_, others_;
  std::vector<Parameter*> declared_;
  std::vector<Initializer> initializers_;  // by index
  Tensor values_, gradients_;
  Expected expected_;
  std::function<void(size_t)> reached_;
  uint64_t version_ = 1;
  bool training_ = false;
};

}  // namespace starling
