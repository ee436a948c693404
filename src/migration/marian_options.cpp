#include "migration/marian_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "config/suggestion.h"
#include "migration/peer_names.h"

namespace starling {
namespace {

// One row for each option that Marian 1.12 has in training, in the order of its help; the defaults are its own.
using enum MarianFate;
constexpr MarianOption kMarianOptions[] = {
#include "migration/marian_options.inc"
};

// The row of the table of names, rather one with a key.
const PeerName* named_row(std::string_view name) {
  const PeerName* found = nullptr;
  for (const PeerName& row : peer_names())
    if (row.name == name && (row.peers.empty() || row.peers.find('M') != std::string_view::npos) &&
        (!found || (found->key.empty() && !row.key.empty())))
      found = &row;
  return found;
}

// A Transformer of the first paper, as Marian's tasks set it up.
MarianAlias transformer_task(const char* name, bool big, bool before) {
  return {"task",
          name,
          {{"type", "transformer"},
           {"enc-depth", "6"},
           {"dec-depth", "6"},
           {"dim-emb", big ? "1024" : "512"},
           {"tied-embeddings-all", "true"},
           {"transformer-dim-ffn", big ? "4096" : "2048"},
           {"transformer-heads", big ? "16" : "8"},
           {"transformer-preprocess", before ? "n" : ""},
           {"transformer-postprocess", before ? "da" : "dan"},
           {"transformer-postprocess-top", before ? "n" : ""},
           {"transformer-ffn-activation", "relu"},
           {"transformer-dropout", "0.1"},
           {"learn-rate", big ? "0.0002" : "0.0003"},
           {"cost-type", "ce-mean-words"},
           {"lr-warmup", big ? "8000" : "16000"},
           {"lr-decay-inv-sqrt", big ? "8000" : "16000"},
           {"label-smoothing", "0.1"},
           {"clip-norm", "0"},
           {"sync-sgd", "true"},
           {"exponential-smoothing", "1e-4"},
           {"max-length", "100"},
           {"mini-batch-fit", "true"},
           {"mini-batch", "1000"},
           {"maxi-batch", "1000"},
           {"workspace", big ? "13000" : "9500"},
           {"optimizer-params", big ? "0.9 0.998 1e-09" : "0.9 0.98 1e-09"},
           {"beam-size", "8"},
           {"valid-mini-batch", big ? "8" : "16"},
           {"normalize", "1"}}};
}

bool same_word(std::string_view a, std::string_view b) {
  double x = 0, y = 0;
  const auto number = [](std::string_view text, double& to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (number(a, x) && number(b, y)) return x == y;
  return folded_name(a) == folded_name(b);
}

}  // namespace

std::span<const MarianOption> marian_options() { return kMarianOptions; }

const MarianOption* marian_option(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kMarianOptions), std::end(kMarianOptions), [&](const MarianOption& o) { return o.name == name; });
  return found == std::end(kMarianOptions) ? nullptr : found;
}

std::string text_of(const MarianOption& option) {
  if (!option.text.empty()) return std::string(option.text);
  const PeerName* const row = named_row(option.name);
  if (!row) return "";
  if (row->key.empty()) return std::string(row->note.empty() ? row->option : row->note);
  return fmt::format("{}{}", row->key, row->note.empty() ? "" : fmt::format(": {}", row->note));
}

bool is_standard(const MarianOption& option, const std::vector<std::string>& values) {
  std::vector<std::string_view> standard;
  for (std::string_view rest = option.standard; !rest.empty();) {
    const size_t blank = std::min(rest.find(' '), rest.size());
    standard.push_back(rest.substr(0, blank));
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  if (standard.empty()) {
    const auto nothing = [](const std::string& v) { return v.empty() || same_word(v, "false") || same_word(v, "no") || same_word(v, "0"); };
    return std::all_of(values.begin(), values.end(), nothing);
  }
  return std::equal(values.begin(), values.end(), standard.begin(), standard.end(), same_word);
}

const std::vector<MarianAlias>& marian_aliases() {
  static const std::vector<MarianAlias> kAliases{transformer_task("transformer-base", false, false),
                                                 transformer_task("transformer-big", true, false),
                                                 transformer_task("transformer-base-prenorm", false, true),
                                                 transformer_task("transformer-big-prenorm", true, true),
                                                 {"best-deep",
                                                  "true",
                                                  {{"type", "s2s"},
                                                   {"enc-depth", "4"},
                                                   {"dec-depth", "4"},
                                                   {"tied-embeddings", "true"},
                                                   {"learn-rate", "0.0003"},
                                                   {"cost-type", "ce-mean-words"},
                                                   {"lr-decay-inv-sqrt", "16000"},
                                                   {"label-smoothing", "0.1"},
                                                   {"clip-norm", "0"},
                                                   {"sync-sgd", "true"},
                                                   {"exponential-smoothing", "1e-4"},
                                                   {"mini-batch-fit", "true"},
                                                   {"mini-batch", "1000"},
                                                   {"maxi-batch", "1000"}}}};
  return kAliases;
}

std::string marian_options_markdown() {
  std::string out = "| option | default there | here |\n|---|---|---|\n";
  for (const MarianOption& o : marian_options()) {
    constexpr std::array kFates{"", "by hand: ", "not needed: ", "no counterpart: "};
    out += fmt::format("| `{}` | {} | {}{} |\n", o.name, o.standard.empty() ? "" : fmt::format("`{}`", o.standard),
                       kFates[static_cast<size_t>(o.fate)], text_of(o));
  }
  return out;
}

}  // namespace starling
