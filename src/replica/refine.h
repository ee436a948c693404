// Refinement by expected reward (Wu et al. 2016, section 5.2): translations are sampled from the model, scored by GLEU against the
// reference, and become training examples whose weight is their advantage. docs/guides/refinement.md has the equations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/batch.h"
#include "config/config.h"
#include "decode/sampling.h"

namespace starling {

enum class RewardBaseline : uint8_t { leave_one_out, mean };
constexpr auto words(RewardBaseline) { return std::array{"leave-one-out", "mean"}; }

struct RefineOptions {
  int64_t samples = 15;  // of each source
  RewardBaseline baseline = RewardBaseline::leave_one_out;
  double likelihood_weight = 0.017;  // of the reference's log-likelihood beside the expected reward
  double max_length_factor = 2.0;
  int64_t max_length_offset = 10;  // tokens
  bool allow_unknown = false;
};
template <class Visitor>
void visit(Visitor& v, RefineOptions& c) {
  v.field("samples", c.samples, "translations sampled per source sentence in an update", 2, 10000);
  v.choice("baseline", c.baseline,
           "what a sample's reward is compared with: the mean of the source's other samples, or of all its samples");
  v.field("likelihood-weight", c.likelihood_weight, "weight of the reference's log-likelihood, which is added to the expected reward", 0.0,
          1e6);
  v.field("max-length-factor", c.max_length_factor, "a sample has at most factor * source tokens + offset tokens", 0.0, 100.0);
  v.field("max-length-offset", c.max_length_offset, "the offset of max-length-factor, tokens", 1, 100000);
  v.field("allow-unknown", c.allow_unknown, "samples may contain the unknown symbol");
}

// A distinct sample of one source and the factor of its log-likelihood in the objective.
struct WeightedSample {
  std::vector<int32_t> tokens;
  double weight = 0;
};

// Returns the distinct samples of one source, in order of first appearance, from its m samples and their rewards. The weight is the sum of
// (r_k - b_k) / m over equal samples, with b_k the baseline over all m; samples whose weight is zero, up to rounding, are left out.
std::vector<WeightedSample> weigh_samples(const Samples& samples, std::span<const double> rewards, RewardBaseline baseline);

// Returns the bytes, without the weights, that drawing samples for the share takes at most, if all of them get as long as they may.
double sampling_bytes(Model& model, const Batch& share, const RefineOptions& options);

// What a rank samples for an update, besides its references.
struct Refinement {
  std::vector<Batch> batches;  // each source once for each of its weighted samples, in micro-batches
  double reward = 0;           // sum of the GLEU of all samples, 0 to 1 each
  double samples = 0, distinct = 0;
};

// Samples translations of the sources of `share` with the current model. The summed gradient of the weighted loss of `batches` estimates
// minus the gradient of the summed expected reward. The result depends on (seed, update, sample ids) and, up to rounding, the model, but
// not on the share. micro_tokens: target tokens of a micro-batch.
Refinement sample_refinement(Model& model, const Batch& share, const RefineOptions& options, uint64_t seed, int64_t update,
                             int64_t micro_tokens);

}  // namespace starling
