#include "decode/framing.h"

namespace starling {

SearchOptions with_prefixes(SearchOptions o, const Vocabularies& v) {
  const auto numbers = [](const Vocabulary& vocabulary, const std::string& pieces, const char* key) {
    std::vector<int32_t> ids;
    for (size_t begin = 0; begin < pieces.size();) {
      const size_t end = std::min(pieces.find(' ', begin), pieces.size());
      const std::string piece = pieces.substr(begin, end - begin);
      begin = end + 1;
      if (piece.empty()) continue;
      const int32_t id = vocabulary.id_of(piece);
      if (id < 0) throw ConfigError(fmt::format("{}: the vocabulary has no piece '{}'; pieces are separated by spaces", key, piece));
      ids.push_back(id);
    }
    return ids;
  };
  o.source_prefix_ids = numbers(v.source(), o.source_prefix, "source-prefix");
  o.target_prefix_ids = numbers(v.target(), o.target_prefix, "target-prefix");
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
