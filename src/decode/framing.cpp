#include "decode/framing.h"

#include <algorithm>

namespace starling {

namespace {

constexpr std::string_view kBetweenSequences = "|||";  // of SearchOptions::suppress

// Returns the numbers of pieces, in sequences: one, unless there are separators between them.
std::vector<std::vector<int32_t>> numbers_of(const Vocabulary& vocabulary, const std::string& pieces, const char* key,
                                             std::string_view separator = "") {
  std::vector<std::vector<int32_t>> sequences(1);
  for (size_t begin = 0; begin < pieces.size();) {
    const size_t end = std::min(pieces.find(' ', begin), pieces.size());
    const std::string piece = pieces.substr(begin, end - begin);
    begin = end + 1;
    if (piece.empty()) continue;
    if (piece == separator) {
      sequences.emplace_back();
      continue;
    }
    const int32_t id = vocabulary.id_of(piece);
    if (id < 0)
      throw ConfigError(fmt::format("{}: the vocabulary has no piece '{}'; pieces are separated by spaces{}", key, piece,
                                    separator.empty() ? "" : fmt::format(", and sequences of pieces by ' {} '", separator)));
    sequences.back().push_back(id);
  }
  return sequences;
}

}  // namespace

SearchOptions with_prefixes(SearchOptions o, const Vocabularies& v) {
  o.source_prefix_ids = numbers_of(v.source(), o.source_prefix, "source-prefix").front();
  o.target_prefix_ids = numbers_of(v.target(), o.target_prefix, "target-prefix").front();
  o.suppress_ids = numbers_of(v.target(), o.suppress, "suppress", kBetweenSequences);
  std::erase_if(o.suppress_ids, [](const auto& sequence) { return sequence.empty(); });
  for (const auto& sequence : o.suppress_ids)
    if (std::count(sequence.begin(), sequence.end(), v.target().eos()) > 0)
      throw ConfigError(fmt::format("suppress: '{}' is the end of sentence, without which translations would not end; leave it out",
                                    v.target().piece(v.target().eos())));
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
  std::vector<int32_t> ids = source.encode(text);
  if (ids.empty()) return ids;
  const auto room = static_cast<size_t>(std::max<int64_t>(most, 1));
  cut = ids.size() > room;
  if (cut) ids.resize(room);
  ids.insert(ids.begin(), options.source_prefix_ids.begin(), options.source_prefix_ids.end());
  ids.push_back(source.eos());
  return ids;
}

}  // namespace starling
