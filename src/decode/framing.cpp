#include "decode/framing.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "text/language_match.h"

namespace starling {
namespace {

constexpr const char* kBetweenSequences = " ||| ";  // of SearchOptions::suppress

std::vector<int32_t> framed_source(std::vector<int32_t> ids, const Vocabulary& source, const SearchOptions& options, int64_t most,
                                   bool& cut) {
  if (ids.empty()) return ids;
  const auto room = static_cast<size_t>(std::max<int64_t>(most, 1));
  cut = ids.size() > room;
  if (cut) ids.resize(room);
  ids.insert(ids.begin(), options.source_prefix_ids.begin(), options.source_prefix_ids.end());
  ids.push_back(source.eos());
  return ids;
}

}  // namespace

SearchOptions with_prefixes(SearchOptions o, const Vocabularies& v) {
  o.source_prefix_ids = v.source().ids_of(o.source_prefix, "source-prefix");
  o.target_prefix_ids = v.target().ids_of(o.target_prefix, "target-prefix");
  const int32_t blank = v.target().id_of("\u2581");  // a space alone
  o.blank_ids.clear();
  if (blank >= 0) o.blank_ids.push_back(blank);
  o.suppress_ids.clear();
  for (std::string_view rest = o.suppress; !rest.empty();) {
    const size_t end = std::min(rest.find(kBetweenSequences), rest.size());
    std::vector<int32_t> sequence = v.target().ids_of(rest.substr(0, end), "suppress");
    rest.remove_prefix(std::min(rest.size(), end + std::strlen(kBetweenSequences)));
    if (std::count(sequence.begin(), sequence.end(), v.target().eos()) > 0)
      throw ConfigError(fmt::format("suppress: '{}' is the end of sentence, without which translations would not end; leave it out",
                                    v.target().piece(v.target().eos())));
    if (!sequence.empty()) o.suppress_ids.push_back(std::move(sequence));
  }
  return o;
}

SearchOptions into_language(SearchOptions o, const Languages& model, const std::string& target) {
  const std::vector<std::string> targets = target_languages(model);
  if (targets.empty() && !target.empty()) {
    if (model.target.empty())
      throw ConfigError(fmt::format(
          "--target-language {}: the model does not say its languages; give its tag with --source-prefix or --target-prefix", target));
    if (!same_language(target, model.target))
      throw ConfigError(fmt::format("--target-language {}: the model translates into {}; leave it out", target, model.target));
  }
  if (targets.empty()) return o;
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const std::string& t) { return same_language(t, target); });
  if (found == targets.end() && !target.empty())
    throw ConfigError(fmt::format("--target-language {}: the model translates into {}", target, fmt::join(targets, ", ")));
  if (targets.size() == 1 || (target.empty() && !o.source_prefix.empty())) return o;
  if (target.empty())
    throw ConfigError(fmt::format("the model translates into {}; choose one of them, such as --target-language {}",
                                  fmt::join(targets, ", "), targets[0]));
  const std::string tag = language_tag(*found);
  if (o.source_prefix.find(tag) != std::string::npos) return o;  // with further tags
  if (!o.source_prefix.empty())
    throw ConfigError(fmt::format("source-prefix '{}' lacks {}, the tag of --target-language {}; leave one of the two out", o.source_prefix,
                                  tag, target));
  o.source_prefix = tag;
  return o;
}

void require_room(const SearchOptions& o, const ModelConfig& config) {
  const int64_t longest = longest_sentence(config);
  for (const auto& [key, ids] : {std::pair{"source-prefix", &o.source_prefix_ids}, {"target-prefix", &o.target_prefix_ids}})
    if (static_cast<int64_t>(ids->size()) + 2 > longest)
      throw ConfigError(fmt::format("{}: {} pieces leave no room in the {} tokens that a sentence of this model may have; shorten it", key,
                                    ids->size(), longest));
}

std::vector<int32_t> source_tokens(std::string_view text, const Vocabulary& source, const SearchOptions& options, int64_t most, bool& cut) {
  return framed_source(source.encode(text), source, options, most, cut);
}

std::vector<int32_t> source_of_pieces(std::string_view pieces, const Vocabulary& source, const SearchOptions& options, int64_t most,
                                      bool& cut) {
  std::vector<int32_t> ids;
  for (size_t begin = 0, end; begin < pieces.size(); begin = end + 1) {
    end = std::min(pieces.find(' ', begin), pieces.size());
    if (end == begin) continue;
    const int32_t id = source.token_id(std::string(pieces.substr(begin, end - begin)));
    ids.push_back(id < 0 ? source.unk() : id);
  }
  if (!ids.empty() && ids.back() == source.eos()) ids.pop_back();
  return framed_source(std::move(ids), source, options, most, cut);
}

}  // namespace starling
