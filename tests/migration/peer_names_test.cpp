// The table of names of other programs: what it answers with exists, every row is found, and the page for their users agrees with it.
#include "migration/peer_names.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/text_files.h"
#include "config/suggestion.h"
#include "settings/config.h"

namespace starling {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> keys_of(const PeerName& row) {
  std::vector<std::string> keys;
  std::string_view text = row.key;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(", "), text.size());
    keys.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 2, text.size()));
  }
  return keys;
}

TEST(PeerNames, EveryKeyExists) {
  const std::vector<std::string> all = all_config_names();
  for (const PeerName& row : peer_names())
    for (const std::string& key : keys_of(row))
      EXPECT_NE(std::find(all.begin(), all.end(), key), all.end()) << row.name << " is answered with " << key;
}

TEST(PeerNames, EveryRowIsFoundAndSaysSomething) {
  const std::vector<std::string> all = all_config_names();
  for (const PeerName& row : peer_names()) {
    EXPECT_EQ(row.peers.find_first_not_of("MOFSB"), std::string::npos) << row.name;
    EXPECT_TRUE(!row.key.empty() || !row.option.empty() || !row.note.empty()) << row.name;
    if (row.key.empty() && !row.option.empty()) continue;  // the other row of its name may answer
    const std::string advice = peer_name_advice(std::string(row.name), all);
    EXPECT_THAT(advice, StartsWith("; ")) << row.name;
    EXPECT_THAT(advice, HasSubstr(std::string(row.note))) << row.name;
    for (const std::string& key : keys_of(row)) EXPECT_THAT(advice, HasSubstr(key)) << row.name;
  }
}

TEST(PeerNames, NoNameOfOursIsAnsweredWithAnotherOne) {
  for (const std::string& name : all_config_names()) {
    const std::string key = name.substr(name.find('.') + 1), advice = peer_name_advice(name, all_config_names());
    EXPECT_TRUE(advice.empty() || advice.find(key) != std::string::npos) << name << advice;
  }
}

TEST(PeerNames, CaseDashesAndSectionsDoNotMatter) {
  const std::vector<std::string> keys = all_config_names();
  const std::string rate = "; fairseq's lr is train.learning-rate here (the peak, after the warm-up)";
  for (const char* name : {"lr", "LR", "train.lr", "optim.Lr"}) EXPECT_EQ(peer_name_advice(name, keys), rate) << name;
  EXPECT_EQ(peer_name_advice("Save-Checkpoint-Steps", keys), "; OpenNMT-py's save_checkpoint_steps is checkpoint.every here");
  EXPECT_EQ(peer_name_advice("dim_emb", keys), "; Marian's dim-emb is model.width here (one width for embeddings and layers)");
  EXPECT_THAT(peer_name_advice("valid.batch_size", keys), HasSubstr("valid.batch-tokens"));
  EXPECT_EQ(peer_name_advice("xyzzy", keys), "");
  EXPECT_EQ(peer_name_advice("", keys), "");
  EXPECT_EQ(peer_name_advice("--", keys), "");
  EXPECT_EQ(peer_name_advice(std::string(1 << 20, '.'), keys), "");
}

std::string message_of(const std::string& yaml) {
  try {
    parse_config(yaml, "c.yml");
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(PeerNames, FilesAreAnsweredWithTheirLine) {
  EXPECT_EQ(message_of("train:\n  seed: 1\n  lr: 1\n"),
            "c.yml:3: there is no key 'lr' in train; fairseq's lr is train.learning-rate here (the peak, after the warm-up)");
  EXPECT_EQ(message_of("# Marian's\nafter-epochs: 10\n"),
            "c.yml:2: there is no section 'after-epochs'; Marian's after-epochs is train.max-epochs here");
  EXPECT_EQ(
      message_of("model: model.npz\n"),
      "c.yml:1: the section 'model' must hold 'key: value' lines, indented by two more spaces; Marian's model is train.output here (a "
      "directory: checkpoints, vocabulary, logs, model)");
  EXPECT_THAT(message_of("data:\n  train:\n    - {path_src: a}\n"),
              HasSubstr("c.yml:3: there is no key 'path_src' in data.train.0; OpenNMT-py's path_src is data.train.0.source here"));
}

TEST(PeerNames, OneLetterHasItsCase) {
  const std::vector<std::string> keys = all_config_names();
  EXPECT_THAT(peer_name_advice("-t", keys), HasSubstr("Marian's -t is data.source and data.target of 'starling train' here"));
  EXPECT_THAT(peer_name_advice("-T", keys), HasSubstr("Marian's -T has no counterpart here: everything is in the run directory"));
  EXPECT_EQ(peer_name_advice("-D", keys), "");
}

// Every value of the table is refused with ours, and ours is allowed.
TEST(PeerNames, ValuesAreAnsweredWithOurs) {
  std::istringstream table(peer_values_markdown());
  std::string line;
  int rows = 0;
  for (std::getline(table, line), std::getline(table, line); std::getline(table, line); ++rows) {
    std::vector<std::string> cells;
    for (size_t at = 0; (at = line.find('`', at)) != std::string::npos; at = line.find('`', at) + 1) {
      const size_t end = line.find('`', at + 1);
      cells.push_back(line.substr(at + 1, end - at - 1));
      at = end;
    }
    ASSERT_EQ(cells.size(), 3u) << line;
    const size_t dot = cells[0].find('.');
    const auto with = [&](const std::string& value) {
      return message_of(cells[0].substr(0, dot) + ":\n  " + cells[0].substr(dot + 1) + ": " + value + "\n");
    };
    EXPECT_THAT(with(cells[1]), StartsWith("c.yml:2: " + cells[0] + ": ")) << line;
    EXPECT_THAT(with(cells[1]), HasSubstr("; did you mean " + cells[2] + "?")) << line;
    EXPECT_THAT(with(cells[2]), Not(AnyOf(HasSubstr("not allowed"), HasSubstr("there is no preset")))) << line;
  }
  EXPECT_GT(rows, 30);
}

TEST(PeerNames, NumbersWithUnitsAreAnsweredWithoutThem) {
  const struct {
    const char *yaml, *answer;
  } misses[] = {
      {"valid:\n  every: 10u\n",
       "c.yml:2: valid.every: '10u' is not a whole number; did you mean 10? Give a whole number from 0 to 1000000000"},
      {"valid:\n  every: 10k\n", "did you mean 10000?"},
      {"train:\n  max-steps: 2M\n", "did you mean 2000000?"},
      {"train:\n  max-steps: 1e5\n", "did you mean 100000?"},
      {"train:\n  batch-tokens: 25,000\n", "did you mean 25000?"},
      {"train:\n  batch-tokens: 25_000\n", "did you mean 25000?"},
      {"train:\n  max-epochs: 10e\n", "did you mean 10?"},
      {"train:\n  max-steps: 10e\n", "epochs are counted by train.max-epochs alone. Give a whole number"},
      {"valid:\n  early-stopping-metric: ce-mean-words\n", "did you mean cross-entropy?"},
      {"train:\n  label-smoothing: 0,1\n", "train.label-smoothing: '0,1' is not a number; did you mean 0.1? Give"},
      {"train:\n  max-minutes: 1,5\n", "did you mean 1.5?"},
  };
  for (const auto& miss : misses) EXPECT_THAT(message_of(miss.yaml), HasSubstr(miss.answer)) << miss.yaml;
  for (const char* far : {"ten", "u", "k", "1.5k", "1e", "e5", ",", "-10k", "10,5", "1,0000", ",000", "25,", ""})
    EXPECT_THAT(message_of(fmt::format("train:\n  max-steps: \"{}\"\n", far)), Not(HasSubstr("did you mean"))) << far;
  EXPECT_THAT(message_of("train:\n  learning-rate: 5e\n"), Not(AnyOf(HasSubstr("did you mean"), HasSubstr("epochs"))));
}

// docs/start/coming-from.md has a section for every program of the table, and the rows that it shows are those of the program.
TEST(PeerNames, ThePageHasEveryProgramAndRowsOfTheTable) {
  const std::string page = read_text_file(STARLING_SOURCE_DIR "/docs/start/coming-from.md"), table = peer_names_markdown();
  EXPECT_THAT(page, HasSubstr("`starling train --names`"));
  int programs = 0, rows = 0;
  std::istringstream names(table);
  for (std::string line; std::getline(names, line);) {
    if (!line.starts_with("| `")) continue;
    const size_t begin = line.find(" | ") + 3;
    std::istringstream cell(line.substr(begin, line.find(" | ", begin) - begin));
    for (std::string program; std::getline(cell >> std::ws, program, ',');) {
      if (program == "many") continue;
      EXPECT_THAT(page, HasSubstr("\n## " + program + "\n")) << line;
      ++programs;
    }
  }
  EXPECT_GT(programs, 300);
  std::istringstream shown(page.substr(std::min(page.find(table.substr(0, table.find('\n'))), page.size())));
  for (std::string line; std::getline(shown, line) && !line.empty(); ++rows) EXPECT_THAT(table, HasSubstr(line + "\n"));
  EXPECT_GT(rows, 10);
}

}  // namespace
}  // namespace starling
