// A backend that computes nothing and keeps nothing: its ops do nothing, and its tensors have no elements. With it, the code that trains is
// only timed, at sizes that would not fit in memory; inside a ProfiledBackend its products are counted.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace starling {

class MetaBackend : public Backend {
 public:
  MetaBackend(DType activation, DType parameter) : activation_(activation), parameter_(parameter) {}

  std::string describe() const override { return "idle: nothing is computed"; }
  DType activation() const override { return activation_; }
  DType parameter() const override { return parameter_; }
  std::unique_ptr<Backend> sibling() const override { return std::make_unique<MetaBackend>(activation_, parameter_); }
  Memory& memory() const override { return meta_memory(); }
  FlatOps& flat() override;

  std::shared_ptr<Packed> pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) override;
  std::shared_ptr<Packed> pack_int8(const Tensor& w, bool transposed, double) override { return pack(w, transposed, nullptr); }

#define STARLING_OP(name, parameters, bytes, ...) \
  void name parameters override { ignore(__VA_ARGS__); }
#define STARLING_NOTED_OP(name, parameters, ...) \
  void name parameters override { ignore(__VA_ARGS__); }
#include "backend/ops.inc"

 private:
  template <class... Arguments>
  static void ignore(const Arguments&...) {}

  DType activation_, parameter_;
};

}  // namespace starling
