#include "decode/framing.h"

#include <algorithm>
#include <cstring>

#include "text/listed_pieces.h"

namespace starling {
namespace {

constexpr const char* kBetweenSequences = " ||| ";  // of SearchOptions::suppress

std::vector<int32_t> framed_source(std::vector<int32_t> ids, int32_t typed, const Vocabulary& source, const SearchOptions& options,
                                   int64_t most, bool& cut) {
  if (ids.empty()) return ids;
  const std::vector<int32_t> prefix = source.listed().prefix_with(options.source_prefix_ids, typed);
  const auto longer = std::ssize(prefix) - std::ssize(options.source_prefix_ids);
  const auto room = static_cast<size_t>(std::max<int64_t>(most - longer, 1));
  cut = ids.size() > room;
  if (cut) ids.resize(room);
  ids.insert(ids.begin(), prefix.begin(), prefix.end());
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
  for (const int32_t id : v.target().listed().without_piece()) o.suppress_ids.push_back({id});
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

void require_room(const SearchOptions& o, const ModelConfig& config) {
  const int64_t longest = longest_sentence(config);
  for (const auto& [key, ids] : {std::pair{"source-prefix", &o.source_prefix_ids}, {"target-prefix", &o.target_prefix_ids}})
    if (static_cast<int64_t>(ids->size()) + 2 > longest)
      throw ConfigError(fmt::format("{}: {} pieces leave no room in the {} tokens that a sentence of this model may have; shorten it", key,
                                    ids->size(), longest));
}

std::vector<int32_t> source_tokens(std::string_view text, const Vocabulary& source, const SearchOptions& options, int64_t most, bool& cut) {
  const int32_t typed = source.take_tag(text);
  return framed_source(source.encode(text), typed, source, options, most, cut);
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
  const int32_t typed = !ids.empty() && source.listed().is_tag(ids[0]) ? ids[0] : -1;
  if (typed >= 0) ids.erase(ids.begin());
  return framed_source(std::move(ids), typed, source, options, most, cut);
}

EncodedLine text_tokens(std::string_view line, const Vocabulary& source) {
  std::string_view text = line;
  const int32_t typed = source.take_tag(text);
  EncodedLine encoded = source.encode_with_bytes(text);
  const int64_t taken = std::ssize(line) - std::ssize(text);
  for (Range& r : encoded.bytes) r = {r.begin + taken, r.end + taken};
  if (typed >= 0 && !source.listed().is_tag(typed)) {
    encoded.ids.insert(encoded.ids.begin(), typed);
    encoded.bytes.insert(encoded.bytes.begin(), {0, taken});
  }
  return encoded;
}

SearchOptions options_for(std::span<const int32_t> source_tokens, const Vocabulary& source, SearchOptions options) {
  const size_t prefix = options.source_prefix_ids.size();
  if (prefix < source_tokens.size() && source.listed().is_tag(source_tokens[prefix]))
    options.source_prefix_ids.push_back(source_tokens[prefix]);
  return options;
}

void PieceCheck::see(std::string_view line, std::span<const int32_t> ids, const Vocabulary& vocabulary) {
  marked_ = marked_ || line.find("\u2581") != std::string_view::npos;
  pieces_ += std::ssize(ids);
  unknown_ += std::count(ids.begin(), ids.end(), vocabulary.unk());
}

std::string PieceCheck::warning(const std::string& option) const {
  if (marked_ || 2 * unknown_ <= pieces_) return "";
  return fmt::format(
      "warning: with {} the input is pieces of the vocabulary, but {} of {} are not, and no word begins with \u2581; leave {} out if it is "
      "text\n",
      option, unknown_, pieces_, option);
}

}  // namespace starling
