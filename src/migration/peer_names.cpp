#include "migration/peer_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/suggestion.h"

namespace starling {
namespace {

struct PeerVerb {
  std::string_view name, peers, verb, note;
};
constexpr PeerVerb kVerbs[] = {
    {"marian", "M", "train", ""},
    {"decode", "M", "translate", ""},
    {"decoder", "M", "translate", ""},
    {"marian-decoder", "M", "translate", ""},
    {"scorer", "M", "score", ""},
    {"marian-scorer", "M", "score", ""},
    {"vocab", "MS", "", "'train' makes the vocabulary when its file is missing"},
    {"marian-vocab", "M", "", "'train' makes the vocabulary when its file is missing"},
    {"marian-train", "M", "train", ""},
    {"server", "M", "serve", "over HTTP; for a pipe use translate, which answers lines as they arrive"},
    {"marian-server", "M", "serve", "over HTTP; for a pipe use translate, which answers lines as they arrive"},
    {"spm-train", "", "", "'train' makes the vocabulary when its file is missing"},
    {"spm-encode", "", "", "raw text comes in and goes out"},
    {"spm-decode", "", "", "raw text comes in and goes out"},
    {"spm-normalize", "", "", "vocab.normalization is part of the vocabulary"},
    {"subword-nmt", "", "", "'train' makes the vocabulary, and raw text comes in and goes out"},
    {"conv", "M", "quantize", ""},
    {"marian-conv", "M", "quantize", ""},
    {"evaluator", "M", "evaluate", ""},
    {"build-vocab", "O", "", "'train' makes the vocabulary when its file is missing"},
    {"onmt-build-vocab", "O", "", "'train' makes the vocabulary when its file is missing"},
    {"onmt-train", "O", "train", ""},
    {"onmt-translate", "O", "translate", ""},
    {"average-models", "O", "average", ""},
    {"onmt-average-models", "O", "average", ""},
    {"release-model", "O", "", "every checkpoint is a model directory that can be copied and used alone"},
    {"predict", "O", "translate", ""},
    {"preprocess", "OF", "", "'train' reads raw text and keeps the tokens in the run directory"},
    {"fairseq-preprocess", "F", "", "'train' reads raw text and keeps the tokens in the run directory"},
    {"fairseq-train", "F", "train", ""},
    {"generate", "F", "translate", ""},
    {"fairseq-generate", "F", "translate", ""},
    {"interactive", "F", "translate", ""},
    {"fairseq-interactive", "F", "translate", ""},
    {"fairseq-score", "F", "evaluate", ""},
    {"prepare-data", "S", "", "'train' reads raw text and keeps the tokens in the run directory"},
    {"sockeye-prepare-data", "S", "", "'train' reads raw text and keeps the tokens in the run directory"},
    {"sockeye-train", "S", "train", ""},
    {"sockeye-translate", "S", "translate", ""},
    {"sockeye-score", "S", "score", ""},
    {"sockeye-evaluate", "S", "evaluate", ""},
    {"sockeye-average", "S", "average", ""},
    {"sockeye-quantize", "S", "quantize", ""},
    {"sacrebleu", "", "evaluate", ""},
    {"bleu", "", "evaluate", ""},
    {"infer", "", "translate", ""},
    {"inference", "", "translate", ""},
    {"finetune", "", "train", "with train.initial-model"},
    {"resume", "", "train", "the same command continues a run"},
};

std::vector<std::string> names_of(std::string_view peers) {
  std::vector<std::string> names;
  for (const char c : peers)
    names.push_back(c == 'M' ? "Marian" : c == 'O' ? "OpenNMT-py" : c == 'F' ? "fairseq" : c == 'B' ? "sacreBLEU" : "Sockeye");
  return names;
}

// Returns a list of owners: "Marian's, OpenNMT-py's and Sockeye's".
std::string owners(std::string_view peers) {
  std::vector<std::string> names = names_of(peers);
  if (names.empty()) return "";
  for (std::string& name : names) name += "'s";
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{}{}{}", fmt::join(names, ", "), names.empty() ? "" : " and ", last);
}

std::vector<std::string> listed(std::string_view keys) {
  std::vector<std::string> all;
  while (!keys.empty()) {
    const size_t comma = std::min(keys.find(", "), keys.size());
    all.emplace_back(keys.substr(0, comma));
    keys.remove_prefix(std::min(comma + 2, keys.size()));
  }
  return all;
}

bool holds(const std::vector<std::string>& known, const std::string& name) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

// Whether two names match. One-letter options are case-sensitive.
bool is_called(std::string_view name, const std::string& wanted) {
  return name.size() == 1 ? name == wanted : folded_name(name) == folded_name(wanted);
}

std::string key_of(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Forms the advice of a row for a user who wrote `written`.
class Answer {
 public:
  Answer(const std::string& written, const std::vector<std::string>& known)
      : known_(known),
        dashes_(written.substr(0, written.find_first_not_of('-'))),
        option_(!dashes_.empty()),
        section_(written.substr(0, written.rfind('.') + 1)) {}

  // Returns our names for the row's meaning; empty if they are not known in the place where it was written.
  std::vector<std::string> here(const PeerName& row) const {
    std::vector<std::string> names;
    for (const std::string& key : listed(row.key)) {
      const std::string same_section = section_ + key_of(key), name = (option_ ? "--" : "") + key;
      const bool text = key.starts_with("data.") || key.starts_with("valid.");  // verbs that read text have options of these names too
      if (!section_.empty() && holds(known_, same_section))
        names.push_back(same_section);
      else if (holds(known_, name))
        names.push_back(name);
      else if (option_ && text && holds(known_, "--" + key_of(key)))
        names.push_back("--" + key_of(key));
    }
    if (names.empty() && option_ && !row.option.empty())
      if (const std::string name(row.option.substr(row.option.find('-'))); holds(known_, name)) names.push_back(name);
    return names;
  }

  std::string text(const PeerName& row) const {
    const std::string who = row.peers.empty() ? "it" : fmt::format("{} {}{}", owners(row.peers), dashes_, row.name);
    const std::string note = row.note.empty() ? "" : fmt::format(" ({})", row.note);
    std::vector<std::string> names = here(row);
    if (!names.empty()) return fmt::format("; {} {} {} here{}", who, names.size() > 1 ? "are" : "is", fmt::join(names, " and "), note);
    if (!row.key.empty()) return fmt::format("; {} is {} of 'starling train' here{}", who, fmt::join(listed(row.key), " and "), note);
    if (!row.option.empty()) {
      const size_t blank = row.option.rfind(' ');
      return fmt::format("; {} is {} of 'starling {}' here{}", who, row.option.substr(blank + 1), row.option.substr(0, blank), note);
    }
    return fmt::format("; {} has no counterpart here: {}", row.peers.empty() ? "it" : who, row.note);
  }

 private:
  const std::vector<std::string>& known_;
  const std::string dashes_;
  const bool option_;
  const std::string section_;  // including its dot and dashes; "" = none
};

std::string advice(const std::string& wanted, const Answer& answer) {
  const PeerName* found = nullptr;
  for (const PeerName& row : peer_names()) {
    if (!is_called(row.name, wanted)) continue;
    if (!answer.here(row).empty()) return answer.text(row);
    if (!found) found = &row;
  }
  return found ? answer.text(*found) : "";
}

}  // namespace

std::string peer_name_advice(const std::string& name, const std::vector<std::string>& known) {
  if (name.size() > 100) return "";
  const Answer answer(name, known);
  const std::string whole = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  const std::string text = advice(whole, answer);
  return text.empty() && whole.find('.') != std::string::npos ? advice(key_of(whole), answer) : text;
}

std::string peer_verb_advice(std::string_view verb) {
  const std::string wanted = folded_name(verb);
  for (const PeerVerb& row : kVerbs) {
    if (row.name != wanted) continue;
    const std::string who = row.peers.empty() ? "it" : fmt::format("{} {}", owners(row.peers), row.name);
    if (row.verb.empty()) return fmt::format("; {} is not needed here: {}", who, row.note);
    return fmt::format("; {} is {} here{}", who, row.verb, row.note.empty() ? "" : fmt::format(" ({})", row.note));
  }
  return "";
}

std::string peer_names_markdown() {
  std::string out = "| there | whose | here | how the value converts |\n|---|---|---|---|\n";
  for (const PeerName& row : peer_names()) {
    const std::vector<std::string> whose = names_of(row.peers);
    std::vector<std::string> names;
    for (const std::string& key : listed(row.key)) names.push_back("`" + key + "`");
    if (!row.option.empty()) names.push_back(fmt::format("`{}`", row.option));
    out += fmt::format("| `{}` | {} | {} | {} |\n", row.name, whose.empty() ? "many" : fmt::format("{}", fmt::join(whose, ", ")),
                       names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", ")), row.note);
  }
  return out;
}

}  // namespace starling
