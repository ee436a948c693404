// Floating-point operations of a pass and the bytes that it moves however few its rows are, counted from the parameters' shapes before
// anything is computed: what the simulator turns into time. Counted are matrix products. Attention's own products, norms and the rest are
// a few per cent and end up in the calibrated rate. Of a stage of a model, its own units are counted; an output that every stage has,
// apart from them.
#pragma once

#include <span>
#include <vector>

#include "comm/clock.h"
#include "models/model.h"
#include "strategies/buckets.h"

namespace starling {

// Rows of a pass's matrix products, idle ones included; the recurrent products, one a step of time, have rows of their own.
struct PassRows {
  double source = 0, target = 0;
  double source_recurrent = 0, target_recurrent = 0;
  double source_tokens = 0, target_tokens = 0;  // without padding rows: what is looked up
};

class ComputeCost {
 public:
  ComputeCost(Model& model, std::span<const Bucket> buckets);

  // Rows of a whole pass of a batch, and of a step of it that has this share.
  PassRows rows(const Batch& batch) const;
  PassRows rows(const Batch& batch, const StepShare& share) const;

  // Loss of so many rows, the gradient of the vocabulary projection included (projection_loss computes it on the way). Bytes: each matrix
  // is read, the projection's gradient added to, and a row of a table read and written a token. packs: the first pass after an update,
  // which packs the matrices.
  Work forward(const PassRows& rows, bool packs = false) const;
  // The share of one of the model's units, which is that of the parameters that it declares; of an output table, the last unit's.
  Work forward_of_unit(size_t unit, const PassRows& rows, bool packs) const { return units_[unit].of(Work::forward, rows, packs); }
  // The backward pass, cut where buckets become complete: the piece before bucket b; all of it for b = -1. Bytes: each matrix is read, and
  // each gradient added to, of tables a row a token.
  Work backward(const PassRows& rows, int64_t bucket = -1, bool packs = false) const;

  // Of an output that every stage has, for its share of the rows.
  Work output_forward(const PassRows& rows, bool packs) const { return output_forward_.of(Work::forward, rows, packs); }
  Work output_backward(const PassRows& rows) const { return output_backward_.of(Work::backward, rows, false); }

  // Relative cost of a source and of a target token in the whole model, for dividing a batch evenly: the same on all stages.
  double source_weight() const { return source_weight_; }
  double target_weight() const { return target_weight_; }

 private:
  struct Side {
    double row = 0, recurrent_row = 0;  // FLOP
    double moved = 0, packed = 0;       // bytes
    double looked_up = 0;               // bytes a token
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
