#include "backend/meta.h"

namespace starling {
namespace {

class MetaFlatOps : public FlatOps {
 public:
  void squares_in_order(const Tensor&, const Tensor&) override {}
  void link_loss(const Tensor&, const Ints&, const HostDeviceArray<float>&, const Tensor&, const Tensor&) override {}
  void rescale(const Tensor&, const Tensor&, const Tensor&) override {}
  void rescale_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Write) override {}
  void divide(const Tensor&, double) override {}
  void scale(const Tensor&, double, const Tensor&, Write) override {}
  void convert(const Tensor&, const Tensor&) override {}
  void displacement(const Displacement&) override {}
  void outer_step(const OuterStep&) override {}
  void compensate(const Tensor&, const Tensor&, const Tensor&, double) override {}
  void collect(const Tensor&, const Tensor&, double, const Tensor&, double, const Tensor&, int64_t, const Tensor&) override {}
  void pack_rows(const Tensor&, const Ints&, const Ints&, int64_t, const Tensor&) override {}
  void add_to_rows(const Tensor&, std::span<const int32_t>, const Tensor&) override {}
  void add_rows(const Tensor&, int64_t, const Tensor&) override {}
};

}  // namespace

FlatOps& MetaBackend::flat() {
  static MetaFlatOps ops;
  return ops;
}

std::shared_ptr<Packed> MetaBackend::pack(const Tensor& w, bool transposed, std::shared_ptr<Packed> reuse) {
  if (!reuse) reuse = std::make_shared<Packed>();
  reuse->in = transposed ? w.columns() : w.rows();
  reuse->out = transposed ? w.rows() : w.columns();
  return reuse;
}

}  // namespace starling
