#include "decode/confidence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/ascii.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "storage/safetensors.h"
#include "text/links.h"
#include "text/script.h"

namespace starling {
namespace {

constexpr const char* kSchema = "starling-confidence-1";
constexpr double kNoEnd = -3;  // nats, for the end of a translation that was cut at the length limit: improbable

double certainty(double log_probability) {
  constexpr double kLeast = 0.005;  // doubt that remains: without it, probabilities of almost 1 would differ without bound
  return -std::log1p(kLeast - std::exp(std::min(log_probability, 0.0)));
}

bool has_unspaced(std::string_view word) {
  while (!word.empty()) {
    const DecodedCodePoint c = decode_utf8_at(word);
    if (c.length > 0 && is_unspaced(c.value)) return true;
    word.remove_prefix(static_cast<size_t>(std::max(c.length, 1)));
  }
  return false;
}

double number(const nlohmann::json& json, const char* name) {
  const double value = json.at(name).get<double>();
  if (!std::isfinite(value)) throw DataError(fmt::format("{} is not a finite number", name));
  return value;
}

}  // namespace

std::vector<TextWord> words_of_pieces(std::string_view text, std::span<const Range> pieces) {
  const std::vector<int64_t> word_of = word_of_bytes(text);
  std::vector<TextWord> words;
  int64_t last = -1;
  bool unspaced = false;
  for (size_t p = 0; p < pieces.size(); ++p) {
    Range bytes = pieces[p];
    if (bytes.count() == 0) continue;
    const int64_t word = word_of[static_cast<size_t>(bytes.end - 1)];  // a piece may begin with the space before its word
    if (word < 0) continue;
    while (word_of[static_cast<size_t>(bytes.begin)] < 0) ++bytes.begin;
    if (word != last) {
      size_t end = static_cast<size_t>(bytes.begin);
      while (end < text.size() && word_of[end] >= 0) ++end;
      unspaced = has_unspaced(text.substr(static_cast<size_t>(bytes.begin), end - static_cast<size_t>(bytes.begin)));
    }
    if (word != last || unspaced)
      words.push_back({bytes, {p}});
    else
      words.back().bytes.end = bytes.end, words.back().pieces.push_back(p);
    last = word;
  }
  return words;
}

std::vector<WordFeatures> word_features(const Hypothesis& h, std::span<const TextWord> words) {
  const std::vector<float>& scores = h.log_probabilities;
  CHECK(scores.size() >= h.tokens.size(), "{} tokens, {} log-probabilities", h.tokens.size(), scores.size());
  const double mean = scores.empty() ? 0 : std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
  std::vector<double> worst;
  for (const TextWord& w : words) {
    worst.push_back(0);
    for (const size_t piece : w.pieces) worst.back() = std::min<double>(worst.back(), scores[piece]);
  }
  const double end = scores.size() > h.tokens.size() ? scores.back() : kNoEnd;
  std::vector<WordFeatures> all;
  for (size_t i = 0; i < words.size(); ++i)
    all.push_back({certainty(worst[i]), worst[i], std::log(static_cast<double>(words[i].pieces.size())), mean,
                   certainty(i == 0 ? 0 : worst[i - 1]), certainty(i + 1 < words.size() ? worst[i + 1] : end)});
  return all;
}

double ConfidenceModel::word(const WordFeatures& features) const {
  double logit = intercept;
  for (size_t i = 0; i < terms.size(); ++i) logit += terms[i].weight * std::clamp(features[i], terms[i].from, terms[i].to);
  return 1 / (1 + std::exp(-logit));
}

Confidence ConfidenceModel::of(const Hypothesis& hypothesis, const Vocabulary& target) const {
  const DecodedLine line = target.decode_with_bytes(hypothesis.tokens);
  const std::vector<TextWord> words = words_of_pieces(line.text, line.bytes);
  const std::vector<WordFeatures> features = word_features(hypothesis, words);
  Confidence confidence;
  for (size_t i = 0; i < words.size(); ++i) {
    confidence.words.push_back({words[i].bytes, word(features[i])});
    confidence.sentence += confidence.words.back().value / static_cast<double>(words.size());
  }
  if (words.empty() && hypothesis.length == 0) confidence.sentence = 1;
  return confidence;
}

Part confidence_part(const ConfidenceModel& model, const std::string& digest) {
  nlohmann::ordered_json json{{"schema", kSchema}, {"model", digest}, {"intercept", model.intercept}};
  for (size_t i = 0; i < kWordFeatures.size(); ++i)
    json["terms"][kWordFeatures[i]] = {{"weight", model.terms[i].weight}, {"from", model.terms[i].from}, {"to", model.terms[i].to}};
  json["fitted_on"] = model.fitted_on;
  return text_part(kConfidenceFile, json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

ConfidenceModel read_confidence(FileSystem& files, const std::string& path, const std::string& digest) {
  const nlohmann::json json = parse_json_object(files.read_file(path), path);
  ConfidenceModel model;
  std::string belongs;
  try {
    if (json.at("schema") != kSchema)
      throw DataError(fmt::format("written by another version ({}, this one reads {})", json.at("schema").dump(), kSchema));
    belongs = json.at("model").get<std::string>();
    model.intercept = number(json, "intercept");
    for (size_t i = 0; i < kWordFeatures.size(); ++i) {
      const nlohmann::json& term = json.at("terms").at(kWordFeatures[i]);
      model.terms[i] = {number(term, "weight"), number(term, "from"), number(term, "to")};
      if (model.terms[i].from > model.terms[i].to) throw DataError(fmt::format("{} begins above its end", kWordFeatures[i]));
    }
    model.fitted_on = json.value("fitted_on", nlohmann::json::object());
  } catch (const nlohmann::json::exception& e) {
    throw DataError(fmt::format("{}: not a calibration ({}); make it again with 'starling calibrate'", path, e.what()));
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}; make it again with 'starling calibrate'", path, e.what()));
  }
  if (belongs != digest)
    throw DataError(
        fmt::format("{}: belongs to other weights than those in this directory; make it again with 'starling calibrate'", path));
  return model;
}

std::string model_digest(FileSystem& files, const std::string& weights) {
  const SafetensorsFile file(files, weights);
  std::vector<const NamedBytes*> vectors;
  for (const NamedBytes& tensor : file.tensors())
    if (tensor.dtype == "F32" && tensor.shape.size() == 1) vectors.push_back(&tensor);
  std::sort(vectors.begin(), vectors.end(), [](const NamedBytes* a, const NamedBytes* b) { return a->name < b->name; });
  Sha256 hash;
  for (const NamedBytes* tensor : vectors) {
    hash.update(std::as_bytes(std::span(std::string_view(tensor->name))));
    hash.update(tensor->data);
  }
  file.require_whole();
  return to_hex(hash.digest());
}

const ConfidenceModel& FoundConfidence::require() const {
  if (!model) throw ConfigError(why_not);
  return *model;
}

FoundConfidence find_confidence(FileSystem& files, const std::string& directory) {
  const std::string path = join_path(directory, kConfidenceFile);
  if (!files.exists(path))
    return {std::nullopt, fmt::format("{}: the model has no calibration, which confidence needs; make one from a development text with "
                                      "'starling calibrate --model {} --source dev.src --target dev.tgt'",
                                      directory, directory)};
  try {
    return {read_confidence(files, path, model_digest(files, join_path(directory, "model.safetensors"))), ""};
  } catch (const Error& e) {  // also a file that may not be read: not everybody asks for confidence
    return {std::nullopt, e.what()};
  }
}

}  // namespace starling
