// From Hugging Face's weights to ours: tables and which of them are one, positions, layers.
#include <algorithm>
#include <cmath>

#include "interop/foreign_array.h"
#include "interop/hf_names.h"
#include "interop/hf_weights.h"

namespace starling {
namespace {

// The names under which the three tables are stored.
struct HfTables {
  std::string source, target, output;
};

HfTables tables_of(HfWeights& w, const HfConfig& h) {
  const auto differ = [&](const std::string& a, const std::string& b, const char* setting) {
    throw DataError(fmt::format("{}: {} and {} differ, though config.json says {}", w.where(), a, b, setting));
  };
  const auto first_of = [&](const std::vector<std::string>& names) -> std::string {
    const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& name) { return w.has(name); });
    if (found == names.end()) throw DataError(fmt::format("{}: tensor {} is missing; fetch the model again", w.where(), names.front()));
    return *found;
  };
  HfTables t;
  if (h.shared) {
    std::vector<std::string> names{kHfShared, kHfSource, kHfTarget};
    if (h.tied) names.push_back(kHfOutput);
    t.source = t.target = first_of(names);
    for (const std::string& name : names) {
      if (w.has(name) && !w.same(name, t.target)) differ(t.target, name, "that there is one table");
      w.ignore(name);
    }
  } else {
    t.source = first_of({kHfSource});
    t.target = h.tied ? first_of({kHfTarget, kHfOutput}) : first_of({kHfTarget});
    if (h.tied && w.has(kHfOutput) && !w.same(kHfOutput, t.target)) differ(t.target, kHfOutput, "tie_word_embeddings");
    w.ignore(kHfOutput);
  }
  t.output = h.tied ? t.target : first_of({kHfOutput});
  return t;
}

bool is_zero(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return x == 0; });
}

OwnedTensor rows_as_tensor(const char* name, std::vector<float> values, int64_t rows, int64_t width) {
  values.resize(static_cast<size_t>(rows * width));
  return float_tensor(name, {rows, width}, std::move(values));
}

// MarianMT's own signals: frequencies 10000^(-k / (D/2)), all sines before all cosines.
std::vector<float> marian_mt_positions(int64_t rows, int64_t width) {
  std::vector<float> table;
  table.reserve(static_cast<size_t>(rows * width));
  for (int64_t p = 0; p < rows; ++p)
    for (int64_t c = 0; c < width; ++c) {
      const double half = static_cast<double>(width / 2), k = static_cast<double>(c % (width / 2));
      const double angle = static_cast<double>(p) / std::pow(10000.0, k / half);
      table.push_back(static_cast<float>(c < width / 2 ? std::sin(angle) : std::cos(angle)));
    }
  return table;
}

void add_positions(HfWeights& w, HfConfig& h, ByteBudget& budget, std::vector<OwnedTensor>& tensors, std::vector<std::string>& notes) {
  const int64_t P = h.positions, D = h.model.width;
  std::vector<float> tables[2];
  bool computed = false;
  for (int i = 0; i < 2; ++i) {
    const char* const name = i == 0 ? kHfSourcePositions : kHfTargetPositions;
    if (w.has(name)) {
      tables[i] = w.floats(name, {P, D});
      continue;
    }
    budget.take(2 * static_cast<uint64_t>(P * D) * sizeof(float), w.where(), "the table of positions that config.json asks for");
    tables[i] = marian_mt_positions(P, D), computed = true;
  }
  if (are_sinusoids(tables[0], D, 0) && are_sinusoids(tables[1], D, 0)) return;  // then sentences may be of any length
  h.model.position_table = P;
  tensors.push_back(float_tensor("encoder.positions", {P, D}, std::move(tables[0])));
  tensors.push_back(float_tensor("decoder.positions", {P, D}, std::move(tables[1])));
  if (computed)
    notes.push_back(fmt::format(
        "Positions are those that MarianMT computes, for sentences of at most {} tokens. Marian's own have other frequencies, so "
        "an OPUS-MT model is better imported from its original archive.",
        P));
}

void add_tables(HfWeights& w, HfConfig& h, std::vector<OwnedTensor>& tensors) {
  const HfTables names = tables_of(w, h);
  ModelConfig& c = h.model;
  const int64_t D = c.width, VS = h.source_rows, VT = h.target_rows;
  const bool output_tied = names.output == names.target || w.same(names.output, names.target);
  const bool one = names.source == names.target || w.same(names.source, names.target);
  if (output_tied) w.ignore(names.output);
  c.tied_embeddings = !output_tied ? TiedEmbeddings::none : one ? TiedEmbeddings::all : TiedEmbeddings::decoder;
  std::vector<float> target = w.floats(names.target, {VT, D});
  const bool zero = is_zero(std::span(target).subspan(static_cast<size_t>(h.pad * D), static_cast<size_t>(D)));
  if (h.start == h.end)
    c.decoder_start = DecoderStart::end;
  else if (h.start == h.pad)
    c.decoder_start = zero ? DecoderStart::zero : DecoderStart::pad;
  // Padding that was added behind the pieces for MarianMT, whose logit it takes out of the softmax, is no piece of ours.
  const bool without = h.family == HfFamily::marian && zero && h.pad == VT - 1 && VS == VT && h.end != h.pad;
  const int64_t source_rows = VS - without, target_rows = VT - without;
  if (c.tied_embeddings == TiedEmbeddings::all) {
    if (!h.shared) w.ignore(names.source);
    tensors.push_back(rows_as_tensor("embedding", std::move(target), target_rows, D));
  } else {
    tensors.push_back(rows_as_tensor("encoder.embedding", w.floats(names.source, {VS, D}), source_rows, D));
    tensors.push_back(rows_as_tensor("decoder.embedding", std::move(target), target_rows, D));
  }
  if (!output_tied) tensors.push_back(rows_as_tensor("decoder.output", w.floats(names.output, {VT, D}), target_rows, D));
  if (h.family == HfFamily::marian && w.has(kHfOutputBias)) {
    std::vector<float> bias = w.floats(kHfOutputBias, {1, VT});
    bias.resize(static_cast<size_t>(target_rows));
    c.output_bias = !is_zero(bias);
    if (c.output_bias) tensors.push_back(float_tensor("decoder.output.bias", {target_rows}, std::move(bias)));
  }
  if (!without) return;
  h.source_rows = source_rows, h.target_rows = target_rows;
  h.pad = -1;
}

}  // namespace

std::vector<OwnedTensor> hf_tensors(HfWeights& w, HfConfig& h, ByteBudget& budget, std::vector<std::string>& notes) {
  std::vector<OwnedTensor> tensors;
  add_tables(w, h, tensors);
  if (h.family == HfFamily::marian) {
    add_positions(w, h, budget, tensors, notes);
  } else {
    for (const char* side : {"encoder", "decoder"}) w.ignore(fmt::format("model.{}.embed_positions.weights", side));  // computed ones
  }
  const int64_t D = h.model.width, F = h.model.feed_forward;
  for (const HfName& name : hf_names(h.model)) {
    const bool weight = name.ours.ends_with(".weight");
    const int64_t in = name.ours.ends_with("outer.weight") ? F : D,
                  out = name.ours.find("feed_forward.inner.") != std::string::npos ? F : D;
    std::vector<float> all;
    for (const std::string& theirs : name.theirs) {
      const std::vector<float> part = w.floats(theirs, weight ? std::vector{out, in} : std::vector{out});
      all.insert(all.end(), part.begin(), part.end());
    }
    const int64_t columns = out * static_cast<int64_t>(name.theirs.size());
    tensors.push_back(weight ? float_tensor(name.ours, {in, columns}, transposed(all, columns, in))
                             : float_tensor(name.ours, {columns}, std::move(all)));
  }
  w.require_all_used();
  return tensors;
}

}  // namespace starling
