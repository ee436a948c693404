// What Marian, OpenNMT-py, fairseq and Sockeye call a thing, and what it is called here: who comes from there and writes a name he knows is
// told ours and how the value converts. docs/start/coming-from.md shows the table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace starling {

struct PeerName {
  std::string_view name;    // as they write it, without dashes
  std::string_view peers;   // letters: M Marian, O OpenNMT-py, F fairseq, S Sockeye, B sacreBLEU; "" = what many say
  std::string_view key;     // of our configuration, or several separated by ", "; "" = none
  std::string_view option;  // of the other verbs, "translate --beam"; "" = none. Without key and option there is no counterpart
  std::string_view note;    // how the value converts, or why there is no counterpart; "" = the same value means the same
};
// A name may have several rows, where it means different things; then each has a key or an option.
std::span<const PeerName> peer_names();

// What a peer's name is called here, as the rest of a message: "; Marian's --mini-batch is --train.batch-tokens here (...)". `known` are
// the names that may be answered with: keys "train.batch-tokens", or options "--beam" if `name` begins with a dash. Upper and lower case,
// hyphens and underscores are the same, but names of one letter have their case; of a name with a section the last part is looked up too.
// "" if no peer has such a name.
std::string peer_name_advice(const std::string& name, const std::vector<std::string>& known);

// What another program's value of our key "section.key" is here, as the rest of a message: "; did you mean bleu?" of valid.metrics
// bleu-detok, "; did you mean 10000?" of 10k; "" if nothing is known of it.
std::string peer_value_advice(const std::string& key, const std::string& text, ValueKind kind);

// The same for a verb: "; Marian's decode is translate here", or "".
std::string peer_verb_advice(std::string_view verb);

// The tables of names and of values as Markdown.
std::string peer_names_markdown();
std::string peer_values_markdown();

}  // namespace starling
