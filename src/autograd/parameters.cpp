#include "autograd/parameters.h"

#include <cmath>

#include "base/random.h"

namespace starling {

Parameter& ParameterStore::add(const std::string& name, const Shape& shape, const Initializer& initializer) {
  CHECK(!values_, "parameter {} added after allocate()", name);
  CHECK(find(name) == nullptr, "two parameters named {}", name);
  Parameter p;
  p.name = name, p.shape = shape, p.index = parameters_.size();
  if (!parameters_.empty()) p.offset = (parameters_.back().offset + parameters_.back().shape.count() + 15) / 16 * 16;
  parameters_.push_back(std::move(p));
  initializers_.push_back(initializer);
  return parameters_.back();
}

int64_t ParameterStore::flat_count() const {
  return parameters_.empty() ? 0 : (parameters_.back().offset + parameters_.back().shape.count() + 15) / 16 * 16;
}

void ParameterStore::allocate(std::optional<uint64_t> seed, bool training) {
  const int64_t total = flat_count();
  values_ = Tensor({total}, backend_.parameter(), backend_.memory());
  if (training) gradients_ = Tensor({total}, backend_.parameter(), backend_.memory());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& p = parameters_[i];
    p.value = values_.slice(p.offset, p.shape);
    p.packed = std::make_shared<PackedForms>();
    if (training) p.gradient = gradients_.slice(p.offset, p.shape);
    if (!seed || !p.value.has_elements()) continue;
    Random random(*seed, 0x1000 + i);
    const Initializer& init = initializers_[i];
    const double bound = p.shape.rank() == 2 ? init.scale * std::sqrt(6.0 / static_cast<double>(p.shape[0] + p.shape[1])) : 0;
    std::vector<double> values(p.shape.count());
    for (size_t at = 0; at < values.size(); ++at) {
      double& v = values[at];
      switch (init.kind) {
        case Initializer::zeros:
          v = 0;
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
          v = at / (values.size() / 4) == 1 ? init.scale : 0;
          break;
      }
      v = static_cast<float>(v);  // so that every backend starts from the same numbers
    }
    p.value.from_doubles(values);
  }
  changed();
}

void ParameterStore::share(const ParameterStore& other) {
  CHECK(parameters_.size() == other.parameters_.size(), "{} parameters against {}", parameters_.size(), other.parameters_.size());
  values_ = other.values_;
  version_ = other.version_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& p = parameters_[i];
    const Parameter& from = other.parameters_[i];
    CHECK(p.name == from.name && p.shape == from.shape, "{} {} against {} {}", p.name, p.shape.text(), from.name, from.shape.text());
    p.value = from.value;
    p.quantized = from.quantized;
    p.packed = from.packed;
  }
}

Parameter* ParameterStore::find(const std::string& name) {
  for (Parameter& p : parameters_)
    if (p.name == name) return &p;
  return nullptr;
}

int64_t ParameterStore::count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.shape.count();
  return n;
}

const Packed& ParameterStore::packed(Parameter& p, bool transposed) {
  PackedForms& forms = *p.packed;
  const std::lock_guard lock(forms.mutex);
  if (forms.version[transposed] != version_) {
    forms.form[transposed] = p.quantized ? backend_.pack_int8(p.value, transposed, p.input_bound)
                                         : backend_.pack(p.value, transposed, std::move(forms.form[transposed]));
    forms.version[transposed] = version_;
  }
  return *forms.form[transposed];
}

}  // namespace starling
