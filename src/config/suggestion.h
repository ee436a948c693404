// Suggests what a mistyped name was meant to be. Names may have a section ("train.batch-tokens") and leading dashes. The section, the key
// and the words within the key are compared separately; otherwise "train.lr" would share most of its characters with every key of its
// section.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling {

// Returns the name in lower case, with hyphens for underscores and without leading dashes: "beam-size" for "--Beam_Size".
std::string folded_name(std::string_view name);

// Returns the candidates nearest to `name`, at most three and all equally near: by edit distance, otherwise those that contain all words
// of its key or words that begin with them. Empty if none is near, because a wrong suggestion is worse than none.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

// Returns the only candidate that has the key of `name` in a subsection of its section: "a.b.key" for "a.key"; "" if there are none or
// several.
std::string moved_name(std::string_view name, const std::vector<std::string>& candidates);
// Returns "; a.key is now a.b.key", or "".
std::string moved_hint(std::string_view name, const std::vector<std::string>& candidates);

// Returns the first of nearest(), or "".
std::string closest(std::string_view name, const std::vector<std::string>& candidates);

// Returns "; did you mean 'x'?", "; did you mean 'x' or 'y'?", or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace starling
