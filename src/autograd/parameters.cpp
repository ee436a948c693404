#include "autograd/parameters.h"

#include <cmath>

#include "base/random.h"
#include "storage/part.h"

namespace starling {

Parameter& ParameterStore::add(const std::string& name, const Shape& shape, const Initializer& initializer, const Cut& cut) {
  CHECK(!values_, "parameter {} added after allocate()", name);
  CHECK(find(name) == nullptr, "two parameters named {}", name);
  Parameter p;
  p.name = name;
  p.shape = p.whole = shape;
  p.cut = cut;
  p.index = declared_.size();
  p.units = {unit_};
  const bool everywhere = unit_ == part_.units.everywhere;
  p.hold = everywhere ? Parameter::copied : part_.units.in_range(unit_) ? Parameter::owned : Parameter::absent;
  if (part_.shards) {
    p.shape = shard_shape(shape, cut, part_.shards->rank(), part_.shards->size());
    if (cut.axis < 0 && part_.shards->rank() > 0 && p.hold == Parameter::owned) p.hold = Parameter::copied;
  }
  auto& list = p.hold == Parameter::owned ? parameters_ : others_;
  list.push_back(std::move(p));
  initializers_.push_back(initializer);
  declared_.push_back(&list.back());
  if (everywhere) add_part(list.back());
  return list.back();
}

// Parts lie in front of the store's own parameters, whose gradients are complete before those of all stages have been added up
// (strategies/buckets.h).
void ParameterStore::add_part(const Parameter& copy) {
  const Range own = starling::part(copy.shape.count(), part_.units.part, part_.units.parts);
  if (own.count() == 0) return;
  Parameter& p = parameters_.emplace_front();
  p.name = copy.name;
  p.shape = Shape{own.count()};
  p.whole = copy.whole;
  p.index = copy.index;
  p.units = copy.units;
  p.copy = &copy;
  p.first = own.begin;
}

const Parameter* ParameterStore::part_of(const Parameter& copy) const {
  for (const Parameter& p : parameters_)
    if (p.copy == &copy) return &p;
  return nullptr;
}

Tensor ParameterStore::owned_value(const Parameter& declared) const {
  if (declared.hold == Parameter::owned) return declared.value;
  const Parameter* own = part_of(declared);
  return own ? own->value : Tensor();
}

void ParameterStore::take_parts() {
  for (Parameter& p : parameters_)
    if (p.copy) p.value.copy_from(p.copy->value.slice(p.first, p.shape));
}

Parameter& ParameterStore::share(Parameter& p) {
  CHECK(!values_, "parameter {} shared after allocate()", p.name);
  p.units.push_back(unit_);
  if (p.hold == Parameter::absent && part_.units.has(unit_)) p.hold = Parameter::copied;
  return p;
}

// Lays out the flat buffers; returns their number of elements.
int64_t ParameterStore::lay_out() {
  int64_t end = 0;
  for (Parameter& p : parameters_) {
    p.offset = end;
    end = round_up(end + p.shape.count(), 16);
  }
  return end;
}

void ParameterStore::allocate(std::optional<uint64_t> seed, bool training) {
  const int64_t total = lay_out();
  training_ = training;
  values_ = Tensor({total}, backend_.parameter(), backend_.memory());
  if (training) gradients_ = Tensor({total}, backend_.parameter(), backend_.memory());
  for (Parameter* p : declared_) {
    if (p->hold == Parameter::absent) continue;
    const bool owned = p->hold == Parameter::owned;
    const auto place = [&](const Tensor& flat) {
      return owned ? flat.slice(p->offset, p->shape) : Tensor(p->shape, backend_.parameter(), backend_.memory());
    };
    p->value = place(values_);
    p->packed = std::make_shared<PackedForms>();
    if (training) p->gradient = place(gradients_);
    if (seed && p->value.has_elements()) draw(*p, *seed);
  }
  for (Parameter& p : parameters_) {
    if (!p.copy) continue;
    p.value = values_.slice(p.offset, p.shape);
    if (training) p.gradient = gradients_.slice(p.offset, p.shape);
  }
  take_parts();
  changed();
}

std::vector<Range> ParameterStore::local_ranges(const Parameter& p) const {
  if (p.copy) return {{p.first, p.first + p.shape.count()}};
  if (!part_.shards) return {{0, p.whole.count()}};
  return shard_ranges(p.whole, p.cut, part_.shards->rank(), part_.shards->size());
}

int64_t ParameterStore::first_here(const Parameter& p) const {
  return !is_cut(p) ? 0 : shard_of(p.whole[p.cut.axis] / p.cut.blocks, part_.shards->rank(), part_.shards->size()).begin;
}

// A shard draws the numbers that the whole parameter has at its elements.
void ParameterStore::draw(const Parameter& p, uint64_t seed) const {
  Random random(seed, 0x1000 + p.index);
  const Initializer& init = initializers_[p.index];
  const double bound = p.whole.rank() == 2 ? init.scale * std::sqrt(6.0 / static_cast<double>(p.whole[0] + p.whole[1])) : 0;
  const int64_t quarter = p.whole.count() / 4;
  std::vector<double> values;
  values.reserve(static_cast<size_t>(p.shape.count()));
  int64_t at = 0;
  const auto next = [&] {
    double v = 0;
    switch (init.kind) {
      case Initializer::zeros:
        break;
      case Initializer::ones:
        v = 1;
        break;
      case Initializer::glorot:
        v = bound * (2 * random.uniform() - 1);
        break;
      case Initializer::normal:
        v = init.scale * random.normal();
        break;
      case Initializer::uniform:
        v = init.scale * (2 * random.uniform() - 1);
        break;
      case Initializer::forget:
        v = at / quarter == 1 ? init.scale : 0;
        break;
    }
    ++at;
    return static_cast<double>(static_cast<float>(v));  // so that every backend starts from the same numbers
  };
  for (const Range& here : local_ranges(p)) {
    while (at < here.begin) next();
    while (at < here.end) values.push_back(next());
  }
  p.value.from_doubles(values);
}

void ParameterStore::view(const ParameterStore& other) {
  CHECK(declared_.size() == other.declared_.size(), "{} parameters against {}", declared_.size(), other.declared_.size());
  lay_out();
  values_ = other.values();
  version_ = other.version_;
  training_ = other.training_;
  for (Parameter* p : declared_) {
    const Parameter& from = *other.declared_[p->index];
    CHECK(p->name == from.name && p->shape == from.shape && p->hold == from.hold, "{} {} against {} {}", p->name, p->shape.text(),
          from.name, from.shape.text());
    p->value = from.value;
    p->quantized = from.quantized;
    p->packed = from.packed;
  }
}

Parameter* ParameterStore::find(const std::string& name) {
  for (Parameter* p : declared_)
    if (p->name == name) return p;
  return nullptr;
}

int64_t ParameterStore::count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.shape.count();
  return n;
}

int64_t ParameterStore::declared_count() const {
  int64_t n = 0;
  for (const Parameter* p : declared_) n += p->whole.count();
  return n;
}

const Packed& ParameterStore::packed(Parameter& p, bool transposed) {
  CHECK(!expects() || reached_, "{} is used while it may be on its way", p.name);
  PackedForms& forms = *p.packed;
  const std::lock_guard lock(forms.mutex);
  if (forms.version[transposed] != version_) {
    auto& form = forms.form[transposed];
    const auto& other = forms.form[!transposed];
    if (p.quantized)
      form = backend_.pack_int8(p.value, transposed, p.input_bound);
    else if (!training_)
      form = backend_.pack_constant(p.value, transposed);
    else if (other && forms.version[!transposed] == version_)
      form = backend_.pack_other_way(p.value, transposed, std::move(form), other);
    else
      form = backend_.pack(p.value, transposed, std::move(form));
    forms.version[transposed] = version_;
  }
  return *forms.form[transposed];
}

}  // namespace starling
