// Maps names of Marian, OpenNMT-py, fairseq and Sockeye to the names used here. A user who writes a name from one of these programs is told
// our name and how the value converts. "starling train --names" prints the table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace starling {

struct PeerName {
  std::string_view name;    // the peer's spelling, without dashes
  std::string_view peers;   // letters: M Marian, O OpenNMT-py, F fairseq, S Sockeye, B sacreBLEU; "" = common to many
  std::string_view key;     // key of our configuration, or several separated by ", "; "" = none
  std::string_view option;  // option of another verb, "translate --beam"; "" = none. Without key and option there is no counterpart
  std::string_view note;    // how the value converts, or why there is no counterpart; "" = the value stays the same
};
// Returns the table. A name with several meanings has several rows, each with a key or an option.
std::span<const PeerName> peer_names();

// Returns what a peer's name is called here, as the end of a message: "; Marian's --mini-batch is --train.batch-tokens here (...)", or ""
// if no peer has such a name. `known` lists the names that may be suggested: keys "train.batch-tokens", or options "--beam" if `name`
// begins with a dash. The comparison ignores case, hyphens and underscores, but one-letter names are case-sensitive. If a name has a
// section, its last part is looked up too.
std::string peer_name_advice(const std::string& name, const std::vector<std::string>& known);

// Returns what another program's value of our key "section.key" is here, as the end of a message: "; did you mean bleu?" for valid.metrics
// bleu-detok, "; did you mean 10000?" for 10k; "" if unknown.
std::string peer_value_advice(const std::string& key, const std::string& text, ValueKind kind);
// The same for a word that an option of a verb does not take, such as "firefox" for --to.
std::string peer_option_value_advice(const std::string& option, const std::string& text);

// Does the same for a verb: "; Marian's decode is translate here", or "".
std::string peer_verb_advice(std::string_view verb);

// Return the tables of names and of values as Markdown.
std::string peer_names_markdown();
std::string peer_values_markdown();

}  // namespace starling
