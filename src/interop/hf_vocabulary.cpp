#include "interop/hf_vocabulary.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "text/language_codes.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

constexpr const char *kPad = "<pad>", *kVocabulary = "vocab.json", *kTargetVocabulary = "target_vocab.json",
                     *kPieceModel = "sentencepiece.bpe.model", *kTokenizer = "tokenizer.json",
                     *kTokenizerSettings = "tokenizer_config.json";

using Numbers = std::map<int64_t, std::string>;  // pieces by number

// Gives a piece its number. Throws DataError if that is out of range or another piece's.
void take_number(Numbers& to, int64_t number, const std::string& piece, int64_t rows, const std::string& where) {
  if (number < 0 || number >= rows)
    throw DataError(fmt::format("{}: {} has number {}, but the model has {} tokens; do the files belong together?", where, in_quotes(piece),
                                number, rows));
  const auto [at, added] = to.emplace(number, piece);
  if (!added && at->second != piece)
    throw DataError(fmt::format("{}: {} and {} have the same number, {}", where, in_quotes(at->second), in_quotes(piece), number));
}

// A file of numbers by piece. Padding behind the last row is left out: hf_tensors() has removed its row.
Numbers numbers_of_file(const ForeignFiles& folder, const char* name, int64_t rows) {
  const std::string where = folder.where(name);
  const BudgetScope scope(folder.budget());
  const nlohmann::json json = parse_json_object(folder.read(name), where, folder.budget());
  Numbers numbers;
  for (const auto& [piece, number] : json.items()) {
    if (!number.is_number_integer() || (number.is_number_unsigned() && number.get<uint64_t>() > INT64_MAX))
      throw DataError(fmt::format("{}: the number of {} is {}, not a whole number", where, in_quotes(piece), printable(number.dump())));
    if (piece != kPad || number.get<int64_t>() != rows) take_number(numbers, number.get<int64_t>(), piece, rows, where);
  }
  return numbers;
}

// Pieces by number, where each of the `rows` has one: numbers without a piece get a name.
std::vector<std::string> all_rows(const Numbers& numbers, int64_t rows) {
  std::vector<std::string> pieces(static_cast<size_t>(rows));
  for (const auto& [number, piece] : numbers) pieces[static_cast<size_t>(number)] = piece;
  for (int64_t n = 0; n < rows; ++n)
    if (!numbers.contains(n)) pieces[static_cast<size_t>(n)] = vocabulary_format::row_without_piece(n);
  return pieces;
}

// "content" of a token, which is an object or a string.
std::optional<std::string> content_of(const nlohmann::json& token) {
  if (token.is_string()) return token.get<std::string>();
  const auto found = token.is_object() ? token.find("content") : token.end();
  if (!token.is_object() || found == token.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<HfSettings> settings_in(const ForeignFiles& folder, const char* name) {
  if (!folder.has(name)) return std::nullopt;
  return HfSettings(folder.read(name), folder.where(name), folder.budget());
}

struct AddedToken {
  std::string content;
  bool special = false;  // not written
};
using AddedTokens = std::map<int64_t, AddedToken>;  // by number

// The tokens that a tokenizer numbers or writes as special ones: additional_special_tokens.
std::vector<std::string> special_tokens(const ForeignFiles& folder) {
  const BudgetScope scope(folder.budget());
  std::vector<std::string> tokens;
  for (const char* name : {"special_tokens_map.json", kTokenizerSettings}) {
    const auto settings = settings_in(folder, name);
    const nlohmann::json* const list = settings ? settings->find("additional_special_tokens") : nullptr;
    if (!list || !list->is_array() || list->empty()) continue;
    for (const nlohmann::json& token : *list)
      if (auto content = content_of(token)) tokens.push_back(std::move(*content));
    return tokens;
  }
  return tokens;
}

// Tokens that were added to the pieces, where a file says their numbers. Padding behind the last row is left out, as in vocab.json.
AddedTokens added_tokens(const ForeignFiles& folder, int64_t rows) {
  const BudgetScope scope(folder.budget());
  Numbers numbers;
  std::set<std::string> special;
  for (std::string& token : special_tokens(folder)) special.insert(std::move(token));
  const auto take = [&](int64_t number, const std::string& content, const nlohmann::json& token, const std::string& where) {
    if (content == kPad && number == rows) return;
    take_number(numbers, number, content, rows, where);
    if (token.is_object() && token.contains("special") && token["special"] == true) special.insert(content);
  };
  if (const auto tokenizer = settings_in(folder, kTokenizer))
    if (const nlohmann::json* const list = tokenizer->find("added_tokens"); list && list->is_array())
      for (const nlohmann::json& token : *list) {
        const auto content = content_of(token);
        if (!content || !token.is_object() || !token.contains("id") || !token["id"].is_number_unsigned()) continue;
        take(static_cast<int64_t>(std::min<uint64_t>(token["id"].get<uint64_t>(), INT64_MAX)), *content, token, tokenizer->where());
      }
  if (const auto settings = settings_in(folder, kTokenizerSettings))
    if (const nlohmann::json* const map = settings->find("added_tokens_decoder"); map && map->is_object())
      for (const auto& [number, token] : map->items()) {
        const auto content = content_of(token);
        if (!content || number.empty() || number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos) continue;
        take(std::stoll(number), *content, token, settings->where());
      }
  constexpr const char* kAdded = "added_tokens.json";
  if (folder.has(kAdded))
    for (const auto& [number, token] : numbers_of_file(folder, kAdded, rows))
      take_number(numbers, number, token, rows, folder.where(kAdded));
  AddedTokens added;
  for (const auto& [number, token] : numbers) added[number] = {token, special.contains(token)};
  return added;
}

// How an added token is found in text. The symbols of every tokenizer are not: text must not be able to end a sentence.
void find_added(const AddedToken& token, std::map<std::string, vocabulary_format::Found>& found) {
  using vocabulary_format::Found;
  constexpr const char* kSymbols[] = {"<s>", "</s>", "<unk>", kPad, "<mask>"};
  if (token.content.empty() || std::find(std::begin(kSymbols), std::end(kSymbols), token.content) != std::end(kSymbols)) return;
  const bool language = token.special && (is_m2m_language(token.content) || is_nllb_language(token.content));
  found[token.content] = language || vocabulary_format::has_form_of_tag(token.content) ? Found::tag
                         : token.special                                               ? Found::added_symbol
                                                                                       : Found::added;
}

// MarianMT's added tokens. They go before the pieces of vocab.json, as in transformers.
std::vector<std::string> with_added(Numbers numbers, const AddedTokens& added, int64_t rows) {
  for (const auto& [number, token] : added) {
    std::erase_if(numbers, [&content = token.content](const auto& n) { return n.second == content; });
    numbers[number] = token.content;
  }
  return all_rows(numbers, rows);
}

void require_number(const std::vector<std::string>& pieces, int64_t number, const char* piece, const char* key, const std::string& where) {
  if (number < 0) return;
  const std::string& found = pieces.at(static_cast<size_t>(number));
  if (found != piece)
    throw ConfigError(fmt::format("{}: {} is {}, which is the number of {}, not of {}; such a model cannot be imported", where, key, number,
                                  in_quotes(found), piece));
}

// M2M-100: vocab.json, tokens of languages behind it. NLLB: the SentencePiece model's order behind four special tokens, then languages.
std::vector<std::string> many_languages(const ForeignFiles& folder, const HfConfig& c, const ForeignFile& model,
                                        std::map<std::string, vocabulary_format::Found>& found) {
  const int64_t rows = c.target_rows;
  Numbers numbers;
  if (folder.has(kVocabulary)) {
    numbers = numbers_of_file(folder, kVocabulary, rows);
  } else {
    const std::vector<vocabulary_format::Piece> pieces = vocabulary_format::pieces(model.content);
    constexpr const char *kOrder[] = {"<unk>", "<s>", "</s>"}, *kNumbered[] = {"<s>", kPad, "</s>", "<unk>"};
    for (size_t i = 0; i < std::size(kOrder); ++i)
      if (pieces.size() <= i || pieces[i].text != kOrder[i])
        throw ConfigError(
            fmt::format("{}: piece {} is not {}, as in NLLB's, and there is no vocab.json with numbers", model.where, i, kOrder[i]));
    for (size_t i = 0; i < std::size(kNumbered); ++i) take_number(numbers, static_cast<int64_t>(i), kNumbered[i], rows, model.where);
    for (size_t i = std::size(kOrder); i < pieces.size(); ++i)
      take_number(numbers, static_cast<int64_t>(i) + 1, std::string(pieces[i].text), rows, model.where);
  }
  AddedTokens added = added_tokens(folder, rows);
  if (static_cast<int64_t>(numbers.size()) == rows) {  // as in an export of ours
    for (const auto& [number, token] : added)
      if (numbers.at(number) == token.content) find_added(token, found);
    return all_rows(numbers, rows);
  }
  const int64_t first = numbers.empty() ? 0 : numbers.rbegin()->first + 1;
  if (added.lower_bound(first) == added.end()) {
    int64_t number = first;
    for (std::string& token : special_tokens(folder)) added[number++] = {std::move(token), true};
  }
  for (const auto& [number, token] : added) {
    take_number(numbers, number, token.content, rows, folder.where(""));
    find_added(token, found);
  }
  if (numbers.lower_bound(first) == numbers.end())
    throw ConfigError(fmt::format(
        "{}: no file says which numbers the languages have; fetch tokenizer.json, tokenizer_config.json, special_tokens_map.json "
        "or added_tokens.json of the model too",
        folder.where("")));
  return all_rows(numbers, rows);
}

// Names the padding that has no piece. M2M-100's may be <s>, which no translation begins with there.
void name_padding(std::vector<std::string>& pieces, const HfConfig& c, int64_t pad, const std::string& where) {
  if (pad < 0) return;
  std::string& piece = pieces.at(static_cast<size_t>(pad));
  if (vocabulary_format::is_row_without_piece(piece)) piece = kPad;
  if (piece == kPad || (c.family == HfFamily::m2m_100 && piece == "<s>")) return;
  throw ConfigError(
      fmt::format("{}: pad_token_id is the number of {}, not of {}; such a model cannot be imported", where, in_quotes(piece), kPad));
}

}  // namespace

HfPieces hf_pieces(FileSystem& files, const ForeignFiles& folder, const HfConfig& c, const VocabularyFiles& given) {
  const bool marian = c.family == HfFamily::marian;
  HfPieces p;
  const auto model_of = [&](const std::string& path, const char* name) -> std::string {
    if (!path.empty()) return path;
    if (folder.has(name)) return name;
    const bool tokenizer = folder.has(kTokenizer);
    throw ConfigError(fmt::format("{}: there is no {}, by which text is split{}; fetch it too, or name it with --vocab", folder.where(""),
                                  name, tokenizer ? " (tokenizer.json is not read for that)" : ""));
  };
  const bool pair = marian || (!folder.has(kPieceModel) && folder.has("source.spm"));  // a SentencePiece model for each side
  p.source_model = model_of(given.source, pair ? "source.spm" : kPieceModel);
  p.target_model = !given.target.empty()   ? given.target
                   : !given.source.empty() ? given.source
                   : pair                  ? model_of("", "target.spm")
                                           : p.source_model;
  const std::string where = folder.where("config.json");
  if (marian) {
    if (!folder.has(kVocabulary))
      throw ConfigError(fmt::format("{}: there is no vocab.json with the numbers of the pieces; fetch it too", folder.where("")));
    const bool apart = !c.shared && folder.has(kTargetVocabulary);
    const AddedTokens added = added_tokens(folder, std::min(c.source_rows, c.target_rows));
    for (const auto& [number, token] : added) find_added(token, p.found);
    p.source = with_added(numbers_of_file(folder, kVocabulary, c.source_rows), added, c.source_rows);
    p.target = with_added(numbers_of_file(folder, apart ? kTargetVocabulary : kVocabulary, c.target_rows), added, c.target_rows);
    name_padding(p.source, c, c.pad < c.source_rows ? c.pad : -1, where);
  } else {
    const ForeignFile model = read_foreign(files, folder, p.source_model);
    if (const auto why = vocabulary_format::defect(model.content))
      throw DataError(fmt::format("{}: not a SentencePiece model ({})", model.where, *why));
    p.source = p.target = many_languages(folder, c, model, p.found);
    std::set<std::string_view> own;
    for (const auto& piece : vocabulary_format::pieces(model.content)) own.insert(piece.text);
    for (const std::string& piece : p.source)
      if ((is_m2m_language(piece) || is_nllb_language(piece)) && !own.contains(piece)) p.found[piece] = vocabulary_format::Found::tag;
  }
  name_padding(p.target, c, c.pad, where);
  require_number(p.target, c.end, "</s>", "eos_token_id", where);
  return p;
}

Vocabularies hf_vocabularies(FileSystem& files, const ForeignFiles& folder, const HfPieces& p) {
  const ForeignFile source = read_foreign(files, folder, p.source_model),
                    target = p.target_model == p.source_model ? source : read_foreign(files, folder, p.target_model);
  const bool joint = source.content == target.content && p.source == p.target;
  Vocabulary of_source = numbered_vocabulary(source, {p.source, p.found}, folder.budget());
  std::optional<Vocabulary> of_target;
  if (!joint) of_target = numbered_vocabulary(target, {p.target, p.found}, folder.budget());
  return Vocabularies(std::move(of_source), std::move(of_target));
}

}  // namespace starling
