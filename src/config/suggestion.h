// What a mistyped name was meant to be. Names may have a section ("train.batch-tokens") and leading dashes; the section, the key and the
// words within the key are compared for themselves, since in "train.lr" five of eight characters would be those of every key of its
// section.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling {

// The name in lower case, with hyphens in place of underscores and without leading dashes: "--Beam_Size" is "beam-size".
std::string folded_name(std::string_view name);

// The candidates that `name` is nearest to, at most three and all equally near: by edit distance, else by containing all words of its key,
// or words that begin so. Empty if none is near: a wrong suggestion is worse than none.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

// The one candidate that has the key of `name` in a section within its section: "a.b.key" of "a.key"; "" if there is none, or several.
std::string moved_name(std::string_view name, const std::vector<std::string>& candidates);
// "; a.key is now a.b.key", or "".
std::string moved_hint(std::string_view name, const std::vector<std::string>& candidates);

// The first of them, or "".
std::string closest(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'x'?", "; did you mean 'x' or 'y'?", or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace starling
