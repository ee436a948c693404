// Describes what a race compares: one training configuration, arms that change it, numbers of workers, seeds, learning-rate candidates,
// networks and targets. Recipes are YAML; docs/reference/race-recipe.md explains the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "metrics/tokenizer_choice.h"
#include "settings/config.h"
#include "sim/scenario.h"

namespace starling {

struct RaceNetwork {
  std::string name;
  double r = 0;  // time of a dense f32 ring all-reduce over one worker's step time; if > 0, it determines the bandwidth
  std::string preset = "10gbe";
  LinkModel link;  // between nodes; -1 = as the preset says
};
template <class Visitor>
void visit(Visitor& v, RaceNetwork& n) {
  v.field("name", n.name, "for tables and files");
  v.field("r", n.r,
          "time of a dense f32 ring all-reduce of the gradient over one worker's computing of a step; the bandwidth follows; 0 = off", 0.0,
          1e6);
  v.choice("network", n.preset, kNetworks, "where the numbers not given come from");
  v.field("latency-us", n.link.latency_us, "one way, microseconds; -1 = as the network says", -1.0, 1e9);
  v.field("bandwidth-gbit-s", n.link.bandwidth_gbit_s, "each direction; -1 = as the network says", -1.0, 1e6);
  v.field("message-us", n.link.message_us, "sender's cost of a message, microseconds; -1 = as the network says", -1.0, 1e9);
}

struct RaceArm {
  std::string name;
  bool control = false;              // runs with all seeds, but is never recommended
  bool timed = false;                // trained once per network although timing does not alter its result
  std::string trained_as;            // arm that computes the same up to rounding; its runs are reused with new times
  std::vector<int64_t> workers;      // empty: as the race
  double longer = 0;                 // 0: as the race
  std::vector<double> rates;         // candidates for train.learning-rate; empty: as the race
  std::vector<std::string> seconds;  // candidates for the race's second key; empty: as the race
  std::vector<ForeignKey> keys;      // configuration keys that the arm changes
};
template <class Visitor>
void visit(Visitor& v, RaceArm& a) {
  v.field("name", a.name, "for tables and files");
  v.field("control", a.control, "a control gets all seeds and is never recommended");
  v.field("timed", a.timed, "train once for each network, as is always done where timing alters the result: a check of the replays");
  v.field("trained-as", a.trained_as,
          "the arm whose runs these are, timed with strategy.overlap, bucket-mib and embedding-gradients of this one; all else must be "
          "equal; empty = it has "
          "its own");
  v.numbers("workers", a.workers, "in place of the race's", 1, 65536);
  v.field("longer", a.longer, "in place of the race's; 0 = as the race says", 0.0, 1000.0);
  v.numbers("learning-rates", a.rates, "candidates for train.learning-rate, in place of the race's", 1e-12, 1e6);
  v.field("second-values", a.seconds, "candidates for the key that race.second-key names, in place of the race's");
  v.foreign("SECTION.KEY", a.keys, "any key of the training configuration: what makes this arm");
}

struct RaceTarget {
  std::string metric = "cross-entropy";
  double value = 0;   // 0: the value that one worker reaches at its end, seed by seed
  double margin = 0;  // fraction of that value by which an arm may be worse
};
template <class Visitor>
void visit(Visitor& v, RaceTarget& t) {
  v.choice("metric", t.metric, {"cross-entropy", "bleu", "chrf", "chrf++", "ter", "gleu"}, "of validation");
  v.field("value", t.value, "to reach; 0 = what one worker has at its end, seed by seed", 0.0, 1e6);
  v.field("margin", t.margin, "with value 0: the share of it by which others may be worse", 0.0, 1.0);
}

struct RaceRecipe {
  std::string train;            // configuration that all share
  std::string output = "race";  // directory
  std::vector<int64_t> workers{4}, seeds{1};
  int64_t finalists = 2;
  int64_t tokens = 1'000'000;        // target tokens that one worker trains on
  double longer = 1;                 // several workers together train on this multiple of `tokens`
  int64_t validate_every = 100'000;  // target tokens
  std::vector<double> rates;         // empty: train.learning-rate
  std::string second_key;            // a second key to tune; empty: none
  std::vector<std::string> seconds;
  std::string tuning = "equal";  // equal | fixed
  int64_t tuning_workers = 0;    // 0: the first number of workers
  bool tune_each = false;        // compare candidates at every number of workers of an arm
  int64_t screening_tokens = 0;  // 0: candidates are full-length runs
  int64_t screening_rungs = 1;   // each rung trains the best third with three times the tokens
  std::vector<std::string> final_metrics;
  bool keep_models = false;
  std::vector<RaceNetwork> networks;
  std::vector<RaceTarget> targets;
  std::vector<RaceArm> arms;
  std::vector<ForeignKey> keys;  // configuration keys that all arms change
  Scenario cluster;              // computing, jitter and stragglers; ranks and network are not set here
  bool rates_given = false;      // the file gives all four computing rates, or a GPU
  std::string file;              // path for messages
  RaceArm baseline;              // one worker with the unchanged configuration
};
template <class Visitor>
void visit(Visitor& v, RaceRecipe& r) {
  v.field("train", r.train, "training configuration that all arms share (starling train -c); relative to the recipe; empty = the defaults");
  v.field("output", r.output, "race directory: runs, tables, picture");
  v.numbers("workers", r.workers, "numbers of workers", 1, 65536);
  v.numbers("seeds", r.seeds, "train.seed of the repetitions; the first one screens", 0, int64_t{1} << 53);
  v.field("finalists", r.finalists, "arms that get all seeds, besides one worker and controls; the others only the first", 0, 1000);
  v.field("tokens", r.tokens, "target tokens that one worker trains on", 1, int64_t{1} << 53);
  v.field("longer", r.longer, "with several workers, train on this multiple of the tokens", 0.01, 1000.0);
  v.field("validate-every", r.validate_every, "target tokens between two validations", 1, int64_t{1} << 53);
  v.numbers("learning-rates", r.rates, "candidates for train.learning-rate, of one worker too; empty = as train says", 1e-12, 1e6);
  v.field("second-key", r.second_key, "one more key of the training configuration that is tuned, \"section.key\"; empty = none");
  v.field("second-values", r.seconds, "candidates for it, each with every learning rate, of one worker too");
  v.choice("tuning", r.tuning, {"equal", "fixed"}, "equal = every arm must have as many candidates; fixed = numbers may differ");
  v.field("tuning-workers", r.tuning_workers, "number of workers at which candidates are compared; 0 = the first", 0, 65536);
  v.field("tune-each", r.tune_each, "candidates are compared at every number of workers, not at tuning-workers alone");
  v.field("screening-tokens", r.screening_tokens,
          "target tokens that each candidate for the learning rate trains on; 0 = as many as a run, and the best one is the run", 0,
          int64_t{1} << 53);
  v.field("screening-rungs", r.screening_rungs,
          "with screening-tokens: after each rung but the last the best third of the candidates goes on with three times as many tokens", 1,
          5);
  v.choice("final-metrics", r.final_metrics, {"bleu", "chrf", "chrf++", "ter", "gleu"}, "measured once, at the end of each run");
  v.field("keep-models", r.keep_models, "keep the checkpoints of finished runs");
  v.records("networks", r.networks, "networks that virtual times are computed for");
  v.records("targets", r.targets, "what is to be reached; the first one decides; empty = cross-entropy of one worker");
  v.records("arms", r.arms, "what is compared");
  v.foreign("SECTION.KEY", r.keys, "any key of the training configuration, for all arms");
}

// Loads a recipe. Throws ConfigError with file:line for every mistake, including those in the configurations that the arms produce.
// `settings` override the file: race.KEY, cluster.KEY, or keys of the training configuration.
RaceRecipe load_recipe(const std::string& path, const std::vector<Override>& settings = {});

// Returns the directory of a run below the race directory.
std::string run_directory(const RaceRecipe& recipe, const std::string& run);

// The values chosen by comparing candidates.
struct RaceChoice {
  double rate = 0;     // train.learning-rate
  std::string second;  // value of race.second-key; "": as in the configuration
};

// A single training run.
struct RaceRun {
  const RaceArm* arm = nullptr;
  int workers = 1;
  int64_t seed = 1;
  double rate = 0;          // 0: as in the configuration
  std::string network;      // set for arms whose timing alters results; else ""
  int rung = 0;             // the screening rung of this candidate; 0: a full-length run
  std::string second = "";  // value of race.second-key; "": as in the configuration
  std::string name() const;
};

// Returns the complete configuration of a run: arm, rate, seed, batch per worker, and limits and validations counted in tokens.
Config race_config(const RaceRecipe& recipe, const RaceRun& run);

// Returns the number of updates of such a run.
int64_t race_updates(const Config& config, int workers);

// Returns the tokenizer of the race's BLEU and GLEU, from its validation text and valid.tokenize; nothing if it measures neither.
std::optional<TokenizerChoice> race_tokenizer(const RaceRecipe& recipe, const ValidConfig& valid);

// Returns the target tokens that the run trains on.
int64_t planned_tokens(const RaceRecipe& recipe, const RaceRun& run);

}  // namespace starling
