#include "interop/imported_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/quotes.h"
#include "decode/framing.h"
#include "interop/foreign_array.h"
#include "tensor/finite.h"
#include "text/language_codes.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr const char* kWeightsFile = "model.safetensors";

void require_finite_floats(const ImportedModel& m, const OwnedTensor& t) {
  const std::span<const float> values(reinterpret_cast<const float*>(t.bytes.data()), t.bytes.size() / sizeof(float));
  if (first_not_finite(values) >= 0)
    throw DataError(fmt::format("{}: the weights for {} are not all finite; fetch the model again", m.kind, t.name));
}

// A model whose weights are all zero translates nothing; a damaged download can look like this. Tables of positions are computed.
void require_weights(const ImportedModel& m) {
  const auto says_nothing = [](const OwnedTensor& t) {
    return t.shape.size() != 2 || t.name.ends_with("positions") || t.bytes.find_first_not_of('\0') == std::string::npos;
  };
  if (!m.tensors.empty() && std::ranges::all_of(m.tensors, says_nothing))
    throw DataError(fmt::format("{}: all its matrices are zero; fetch the model again", m.kind));
}

// Compares the tensors with the parameters of the model that the configuration describes.
void require_complete(const ImportedModel& m) {
  std::map<std::string, const OwnedTensor*> given;
  for (const OwnedTensor& t : m.tensors)
    if (!given.emplace(t.name, &t).second) throw DataError(fmt::format("{}: tensor {} occurs twice", m.kind, t.name));
  const auto backend = make_backend("reference");
  const auto model = declare_model(m.config, m.vocabularies.sizes(), *backend);
  for (const Parameter* p : model->parameters().declared()) {
    const auto found = given.find(p->name);
    if (found == given.end()) throw DataError(fmt::format("{}: the weights for {} are missing; fetch the model again", m.kind, p->name));
    std::vector<int64_t> shape;
    for (int i = 0; i < p->whole.rank(); ++i) shape.push_back(p->whole[i]);
    const OwnedTensor& t = *found->second;
    if (t.shape != shape)
      throw DataError(fmt::format("{}: the weights for {} are [{}], but its settings and vocabulary ask for {}", m.kind, p->name,
                                  fmt::join(t.shape, ", "), p->whole.text()));
    if (t.dtype == "F32") {
      require_finite_floats(m, t);
    } else {
      const auto scale = given.find(p->name + ".scale");
      if (shape.size() != 2 || scale == given.end()) throw DataError(fmt::format("{}: the integers of {} have no scales", m.kind, p->name));
      require_finite_floats(m, *scale->second);
      given.erase(scale);
    }
    given.erase(found);
  }
  if (!given.empty())
    throw DataError(fmt::format("{}: its weights {} have no place in the model that its settings describe; do the files belong together?",
                                m.kind, given.begin()->first));
}

}  // namespace

void set_typed_tag(ImportedModel& m, const std::string& target) {
  std::vector<std::string> tags = typed_tags(m.vocabularies.source());
  std::erase_if(tags, [](const std::string& tag) { return !vocabulary_format::has_form_of_tag(tag); });
  if (tags.empty()) return;
  const std::string tag = language_piece(tags, target);
  if (!target.empty() && tag.empty()) m.notes.push_back(fmt::format("It has no tag for {}.", target));
  if (!tag.empty()) m.search.source_prefix = tag;
  if (!m.search.source_prefix.empty())
    m.notes.push_back(
        fmt::format("source-prefix: {}, which decode.yml has and translate's options can change.", printable(m.search.source_prefix)));
  m.notes.push_back(
      fmt::format("Its sources begin with the tag of the target language: {}. Choose one with --target-language, here or for "
                  "translate, or begin each line with one.",
                  printable(fmt::format("{}", fmt::join(tags, ", ")))));
}

void publish_imported(FileSystem& files, const std::string& directory, const ImportedModel& model) {
  check(model.config);
  require_complete(model);
  require_weights(model);
  require_room(with_prefixes(model.search, model.vocabularies), model.config);
  std::vector<NamedBytes> tensors;
  bool quantized = false;
  for (const OwnedTensor& t : model.tensors) {
    tensors.push_back({t.name, t.dtype, t.shape, std::as_bytes(std::span(t.bytes))});
    quantized |= t.dtype == "I8";
  }
  std::vector<Part> parts = description_parts(model.config, model.languages, model.vocabularies, model.search, 0, quantized);
  parts.push_back(safetensors_part(kWeightsFile, std::move(tensors), {{"format", "starling"}, {"step", "0"}, {"imported", model.kind}}));
  parts.insert(parts.end(), model.further_files.begin(), model.further_files.end());
  publish_directory(files, directory, 0, parts);
  try {
    read_description(files, directory);  // settings beyond what ours may be are found here
  } catch (const Error& e) {
    files.remove_all(directory);
    throw ConfigError(fmt::format("{}: the model cannot be imported: {}", model.kind, e.what()));
  }
}

}  // namespace starling
