// Everything trainable is flat: values, gradients and each optimizer state are one buffer, named parameters are views of it.
// A parameter that is used as a weight is packed for its matrix products when it is first needed after a change.
//
// A model declares its parameters unit by unit: a unit is a piece of its forward pass, such as a layer. The store of one stage of a
// pipeline is for some of the units only: it owns the parameters that these declare, keeps a copy of those that they share with earlier
// units, and knows no more than the names and shapes of the rest. Where the units are in shards, it has its shard of the parameters that
// are cut; of those that are not, the first worker of the group owns one and the others keep copies. A unit may be on every stage: then
// each has copies of its parameters and owns a part of each of them.
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

// A weight packed as (in, out) and transposed, and the version of the values each form was made from. Shared by the views of a model.
struct PackedForms {
  std::mutex mutex;
  std::shared_ptr<Packed> form[2];
  uint64_t version[2] = {0, 0};
};

struct Parameter {
  enum Hold : uint8_t {
    owned,   // a view of the flat buffers
    copied,  // of another worker's, which updates it
    absent   // of units that the store is not for
  };
  std::string name;
  Shape shape;       // here
  Shape whole;       // of the model's
  Cut cut;           // how it is cut where units are in shards
  size_t index = 0;  // in the model's declaration
  Hold hold = owned;
  std::vector<size_t> units;  // that use it, the one that declares it first
  int64_t offset = 0;         // elements from the start of the flat buffers; a multiple of 16
  Tensor value, gradient;     // empty when absent
  std::shared_ptr<PackedForms> packed;
  // A part of a parameter that every stage has a copy of: of that one, elements [first, first + shape.count()). The copy is the declared
  // one, of the same name and index; the part is among those that the store owns.
  const Parameter* copy = nullptr;
  int64_t first = 0;
  bool quantized = false;  // matrix products in 8-bit integers: inference only
  double input_bound = 0;  // the largest magnitude of what the weight is multiplied with, where the model bounds it; 0: unknown
};

struct Initializer {
  enum Kind { zeros, ones, glorot, normal, uniform, forget } kind = zeros;
  // glorot: factor on the bound sqrt(6 / (in + out)); normal: standard deviation; uniform: bound; forget: value of an LSTM's forget biases,
  // the second quarter, the rest being zero.
  double scale = 1;
};

// Units [begin, end) of a model.
struct UnitRange {
  size_t begin = 0, end = static_cast<size_t>(-1);
  // A unit besides these that every stage has, of whose parameters this one owns part `part` of `parts`.
  size_t everywhere = static_cast<size_t>(-1);
  int part = 0, parts = 1;
  bool in_range(size_t unit) const { return begin <= unit && unit < end; }
  bool has(size_t unit) const { return in_range(unit) || unit == everywhere; }
};

// The part of a model that a worker has: some of the units, and of these the group's shard.
struct ModelPart {
  ModelPart(const UnitRange& units = {}, ShardGroup* shards = nullptr) : units(units), shards(is_spread(shards) ? shards : nullptr) {}
  UnitRange units;
  ShardGroup* shards;  // null: they are whole
};

class ParameterStore {
 public:
  explicit ParameterStore(Backend& backend, const ModelPart& part = {}) : backend_(backend), part_(part) {}

  // All additions come before allocate(), in the order of the forward pass. What is added belongs to the unit that was begun last.
  void begin_unit(size_t unit) { unit_ = unit; }
  // shape: of the whole parameter, which is cut into shards where the store's units are.
  Parameter& add(const std::string& name, const Shape& shape, const Initializer& initializer, const Cut& cut = {});
  // This unit uses a parameter of an earlier one too.
  Parameter& share(Parameter& parameter);
  // Creates the flat buffers; gradients only when `training`. Values are drawn from the seed, or zero without one (to be loaded).
  void allocate(std::optional<uint64_t> seed, bool training);

  // In place of allocate(): the values and packed weights of a store with the same parameters, which must not change while both live.
  void view(const ParameterStore& other);

  Backend& backend() const { return backend_; }
  const ModelPart& part() const { return part_; }
  const UnitRange& units() const { return part_.units; }
  ShardGroup* shards() const { return part_.shards; }
  // Whether only a shard of the parameter is here.
  bool is_cut(const Parameter& p) const { return part_.shards && p.cut.axis >= 0; }
  // Which elements of the whole parameter are here, ascending.
  std::vector<Range> local_ranges(const Parameter& p) const;
  // Where this worker's part of each block begins: its first column, head or token.
  int64_t first_here(const Parameter& p) const;
  // Those that the store owns, in the order of the flat buffers: first the parts of those that every stage has.
  std::deque<Parameter>& all() { return parameters_; }
  const std::deque<Parameter>& all() const { return parameters_; }
  // All of the model, by index.
  const std::vector<Parameter*>& declared() const { return declared_; }
  Parameter* find(const std::string& name);
  int64_t count() const;           // owned parameters, without the padding between them
  int64_t declared_count() const;  // of the model, whole
  // Flat. Where some may still be on their way, wait_for_parameters() comes first; otherwise reading them here is an error.
  const Tensor& values() const {
    CHECK(!expects(), "parameters are read while some of them are still on their way from other ranks");
    return values_;
  }
  // Elements of values(), known whatever is on its way.
  int64_t flat_count() const { return values_.count(); }
  // Until all that is expected has come. Exchanges: all ranks must call it at the same place.
  void wait_for_parameters() const {
    if (const auto all = expected_.all) all();  // a copy, since it ends by expect({})
  }
  const Tensor& gradients() const { return gradients_; }  // flat
  // The part of a parameter that every stage has a copy of; null if this store owns nothing of it.
  const Parameter* part_of(const Parameter& copy) const;
  // What the store owns of a declared parameter, in the flat buffer; empty if nothing.
  Tensor owned_value(const Parameter& declared) const;
  // The parts take their values from the copies, which were loaded.
  void take_parts();
  // Some values are on their way from other ranks. `all` waits for them, `unit` for those of a unit; once the last has come nothing is
  // expected: expect({}). A forward pass says which unit it has reached before it reads that unit's parameters; where nobody waits unit by
  // unit, it waits for them all.
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
  // To be called whenever values change: packed weights are stale from here on.
  void changed() { ++version_; }
  bool training() const { return training_; }  // has gradients, or is a view of one that has
  // Whether the products of decoding had better have few different numbers of rows.
  bool prefers_round_rows() const { return training_ || backend_.prefers_round_rows(); }
  // y = x W with W = value (in, out), or with W = value^T when transposed.
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
