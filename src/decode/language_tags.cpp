// How a model of several languages is told by pieces into which one it is to translate (decode/framing.h).
#include <fmt/ranges.h>

#include <algorithm>

#include "base/counted.h"
#include "decode/framing.h"
#include "text/language_codes.h"
#include "text/language_match.h"
#include "text/listed_pieces.h"

namespace starling {
namespace {

using vocabulary_format::has_form_of_tag;

// A few of them, for messages.
std::string some_of(const std::vector<std::string>& tags) {
  constexpr size_t kSome = 8;
  const std::span some(tags.data(), std::min(tags.size(), kSome));
  return fmt::format("{}{}", fmt::join(some, ", "), tags.size() > kSome ? fmt::format(" and {} more", tags.size() - kSome) : "");
}

// "fra" for >>fra<<, "fra-Latn" for fra_Latn, "fr" for __fr__; "" if that is not a code.
std::string code_of_tag(std::string_view tag) {
  if (!is_nllb_language(tag)) tag = tag.substr(2, tag.size() - 4);
  std::string code(tag);
  std::replace(code.begin(), code.end(), '_', '-');
  return is_language_code(code) ? code : "";
}

// Puts the tag in the place of the prefix's own, or in front.
std::string with_tag(const std::string& prefix, const std::string& tag, const std::vector<std::string>& tags) {
  std::string whole;
  bool placed = false;
  for (size_t begin = 0; begin < prefix.size();) {
    const size_t end = std::min(prefix.find(' ', begin), prefix.size());
    std::string piece = prefix.substr(begin, end - begin);
    begin = end + 1;
    const bool own = std::find(tags.begin(), tags.end(), piece) != tags.end();
    if (piece.empty() || (own && placed)) continue;
    placed |= own;
    whole += (whole.empty() ? "" : " ") + (own ? tag : piece);
  }
  return placed ? whole : tag + (whole.empty() ? "" : " ") + whole;
}

SearchOptions with_typed_tag(SearchOptions o, const ModelDescription& model, const std::string& target,
                             const std::vector<std::string>& tags) {
  const std::string tag = target_tag(model, target);
  if (tag.empty()) {
    if (same_language(target, model.languages.target)) return o;
    throw ConfigError(fmt::format("--target-language {}: the model has no tag for it; its tags are {}", target, some_of(tags)));
  }
  const bool in_front = has_form_of_tag(tag);
  std::string& prefix = in_front ? o.source_prefix : o.target_prefix;
  const std::string& own = in_front ? model.search.source_prefix : model.search.target_prefix;
  if (prefix != own && !prefix.empty() && prefix.find(tag) == std::string::npos)
    throw ConfigError(fmt::format("{} '{}' lacks {}, the tag of --target-language {}; leave one of the two out",
                                  in_front ? "source-prefix" : "target-prefix", prefix, tag, target));
  prefix = with_tag(prefix, tag, tags);
  return o;
}

}  // namespace

std::vector<std::string> typed_tags(const Vocabulary& source) {
  std::vector<std::string> tags, others;
  for (const auto& [tag, id] : source.listed().tags()) (has_form_of_tag(tag) ? tags : others).push_back(tag);
  return tags.empty() ? others : tags;
}

Languages languages_with_tags(const ModelDescription& model) {
  Languages languages = model.languages;
  if (!languages.directions.empty() || languages.source.empty() || !languages.target.empty()) return languages;
  for (const std::string& tag : typed_tags(model.vocabularies.source()))
    if (const std::string code = code_of_tag(tag); !code.empty()) languages.directions.push_back(languages.source + ":" + code);
  if (languages.directions.size() == 1) languages.directions.clear();
  return languages;
}

std::string target_tag(const ModelDescription& model, const std::string& language) {
  return language_piece(typed_tags(model.vocabularies.source()), language);
}

SearchOptions into_language(SearchOptions o, const ModelDescription& model, const std::string& target) {
  const std::vector<std::string> targets = target_languages(model.languages), tags = typed_tags(model.vocabularies.source());
  if (targets.empty() && !tags.empty()) return target.empty() ? o : with_typed_tag(std::move(o), model, target, tags);
  if (targets.empty() && !target.empty()) {
    const std::string& only = model.languages.target;
    if (only.empty())
      throw ConfigError(fmt::format(
          "--target-language {}: the model does not name its languages; give its tag with --source-prefix or --target-prefix", target));
    if (!same_language(target, only))
      throw ConfigError(fmt::format("--target-language {}: the model translates into {}; leave it out", target, only));
  }
  if (targets.empty()) return o;
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const std::string& t) { return same_language(t, target); });
  if (found == targets.end() && !target.empty())
    throw ConfigError(
        fmt::format("--target-language {}: the model translates into {}; choose one of these", target, fmt::join(targets, ", ")));
  if (targets.size() == 1 || (target.empty() && (!o.source_prefix.empty() || !tags.empty()))) return o;
  if (target.empty())
    throw ConfigError(fmt::format("the model translates into {}; choose one of them, such as --target-language {}",
                                  fmt::join(targets, ", "), targets[0]));
  const std::string own = target_tag(model, *found), tag = own.empty() ? language_tag(*found) : own;
  if (o.source_prefix.find(tag) != std::string::npos) return o;  // with further tags
  if (!o.source_prefix.empty())
    throw ConfigError(fmt::format("source-prefix '{}' lacks {}, the tag of --target-language {}; leave one of the two out", o.source_prefix,
                                  tag, target));
  o.source_prefix = tag;
  return o;
}

TagCheck::TagCheck(const Vocabulary& source, const SearchOptions& options) : source_(&source) {
  for (const std::string& tag : typed_tags(source))
    if (has_form_of_tag(tag)) tags_.push_back(tag);
  for (const int32_t id : options.source_prefix_ids) given_ |= source.listed().is_tag(id);
}

void TagCheck::see(std::string_view line) {
  if (tags_.empty() || line.find_first_not_of(' ') == std::string_view::npos) return;
  if (const std::string_view unknown = source_->listed().unknown_tag(line); !unknown.empty()) {
    if (wrong_++ == 0) example_ = unknown;
  } else if (!given_ && source_->take_tag(line) < 0) {
    ++missing_;
  }
}

std::string TagCheck::warning() const {
  std::string text;
  if (wrong_ > 0)
    text += fmt::format("warning: {} {} with a tag that the model does not have, such as {}, which is unknown to it; its tags are {}\n",
                        counted(wrong_, "line"), wrong_ == 1 ? "begins" : "begin", example_, some_of(tags_));
  if (missing_ > 0)
    text += fmt::format(
        "warning: {} no tag of the target language, which the model needs; give --target-language, or begin {} with one of {}\n",
        missing_ == 1 ? "1 line has" : fmt::format("{} lines have", missing_), missing_ == 1 ? "it" : "them", some_of(tags_));
  return text;
}

}  // namespace starling
