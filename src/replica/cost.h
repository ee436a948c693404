// Counts the floating-point operations of a pass, and the bytes that it moves however few its rows are, from the parameters' shapes, before
// anything is computed. The simulator turns them into time. Only matrix products with parameters are counted: attention's own products,
// norms and the rest are a few per cent and end up in the calibrated rate. A stage counts its own units; an output that every stage has is
// counted separately.
#pragma once

#include <span>
#include <vector>

#include "comm/clock.h"
#include "models/model.h"
#include "strategies/buckets.h"

namespace starling {

// Rows of a pass's matrix products, padding rows included. Recurrent products, one per time step, have rows of their own.
struct PassRows {
  double source = 0, target = 0;
  double source_recurrent = 0, target_recurrent = 0;
  double source_tokens = 0, target_tokens = 0;  // without padding rows: embedding look-ups
};

class ComputeCost {
 public:
  ComputeCost(Model& model, std::span<const Bucket> buckets);

  // Returns the rows of a whole pass of a batch, or of a step of that pass which has this share.
  PassRows rows(const Batch& batch) const;
  PassRows rows(const Batch& batch, const StepShare& share) const;

  // Work of the forward pass and the loss of these rows, including the gradient of the vocabulary projection, which projection_loss
  // computes on the way. Bytes: each matrix is read, the projection's gradient is accumulated, and one table row per token is read and
  // written. packs: whether this is the first pass after an update, which packs the matrices.
  Work forward(const PassRows& rows, bool packs = false) const;
  // The same for one of the model's units, by the parameters that it declares; an output table counts for the last unit.
  Work forward_of_unit(size_t unit, const PassRows& rows, bool packs) const { return units_[unit].of(Work::forward, rows, packs); }
  // Work of the backward pass, cut where buckets become complete: the piece that ends with the given bucket; all of it for -1. Bytes: each
  // matrix is read, and each gradient accumulated; of tables, one row per token.
  Work backward(const PassRows& rows, int64_t bucket = -1, bool packs = false) const;

  // Work of an output that every stage has, for its share of the rows.
  Work output_forward(const PassRows& rows, bool packs) const { return output_forward_.of(Work::forward, rows, packs); }
  Work output_backward(const PassRows& rows) const { return output_backward_.of(Work::backward, rows, false); }

  // Relative cost of a source and of a target token in the whole model, for dividing a batch evenly. The same on all stages.
  double source_weight() const { return source_weight_; }
  double target_weight() const { return target_weight_; }

 private:
  struct Side {
    double row = 0, recurrent_row = 0;  // FLOP
    double moved = 0, packed = 0;       // bytes
    double looked_up = 0;               // bytes per token
  };
  struct Part {
    Side source, target;
    Work of(Work::Kind kind, const PassRows& rows, bool packs) const;
  };
  Part forward_, backward_, output_forward_, output_backward_;
  std::vector<Part> pieces_;  // of the backward pass, by bucket
  std::vector<Part> units_;   // of the forward pass, by unit
  double source_weight_ = 0, target_weight_ = 0;
  bool recurrent_ = false;
};

}  // namespace starling
