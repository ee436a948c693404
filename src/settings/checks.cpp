#include "settings/checks.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/error.h"
#include "metrics/tokenizers.h"
#include "parallel/stages.h"
#include "settings/model_section.h"
#include "strategies/factory.h"

namespace starling {
namespace {

void check_model(const Config& c) {
  if (c.model.width % c.model.heads != 0) {
    throw ConfigError(fmt::format("model.width {} is not a multiple of model.heads {}; set model.width to {} or choose other heads",
                                  c.model.width, c.model.heads, (c.model.width / c.model.heads + 1) * c.model.heads));
  }
  if (c.model.tied_embeddings == TiedEmbeddings::all && !c.vocab.joint) {
    throw ConfigError(
        "model.tied-embeddings is all, which needs one vocabulary for both sides; set vocab.joint to true, or "
        "model.tied-embeddings to decoder or none");
  }
  check(c.model);
  if (c.data.max_length > longest_sentence(c.model))
    throw ConfigError(
        fmt::format("data.max-length {} is more than the {} positions that the model has; lower it, or raise model.position-table",
                    c.data.max_length, longest_sentence(c.model)));
}

// Keys of the other family have no effect; a user who sets one has another model in mind.
void check_family(const ModelConfig& c) {
  ModelConfig asked = c, preset = model_preset(c.preset), defaults;
  std::vector<std::string> programs;
  const auto sections = [&](ModelConfig& model) {
    ModelSection section{model, programs};
    return config_sections("model", "", section);
  };
  refuse_idle_keys(sections(asked), std::vector{sections(preset), sections(defaults)});
}

void check_clip(const Config& c) {
  if (c.model.clip > 0 && c.train.clip_start < c.model.clip)
    throw ConfigError(
        fmt::format("train.clip-start {} is below model.clip {}, to which the bound must fall; raise clip-start or lower clip",
                    c.train.clip_start, c.model.clip));
}

void check_vocab(const VocabConfig& c) {
  if (!c.joint && !c.source.empty() && c.source == c.target) {
    throw ConfigError(
        fmt::format("vocab.source and vocab.target are the same file {}; set vocab.joint to true or name two files", in_quotes(c.source)));
  }
  if (c.joint && !c.target.empty() && c.source != c.target) {
    throw ConfigError("vocab.target is set, but vocab.joint is true; name the one vocabulary in vocab.source, or set vocab.joint to false");
  }
}

void check_train(const TrainConfig& c) {
  if (c.output.empty()) throw ConfigError("train.output is empty; name the run directory, e.g. train.output: run");
  if (c.optimizer.optimizer == OptimizerKind::sgd && c.optimizer.sgd_after > 0) {
    throw ConfigError("train.sgd-after is for a run that begins with Adam, but train.optimizer is sgd; remove one of the two");
  }
  if (c.optimizer.sgd_after > 0 && c.optimizer.weight_decay > 0) {
    throw ConfigError(
        fmt::format("train.weight-decay {:g} would act at the rate of train.sgd-after too, where it shrinks the weights by the factor "
                    "{:g} per update; set train.weight-decay to 0",
                    c.optimizer.weight_decay, 1 - c.optimizer.sgd_learning_rate * c.optimizer.weight_decay));
  }
  if (c.micro_batch_tokens > c.batch_tokens) {
    throw ConfigError(fmt::format("train.micro-batch-tokens {} is larger than train.batch-tokens {}; lower it or set it to 0",
                                  c.micro_batch_tokens, c.batch_tokens));
  }
}

void check_valid(const ValidConfig& c) {
  const bool scripted = std::find(c.metrics.begin(), c.metrics.end(), kScriptMetric) != c.metrics.end();
  if (scripted && c.script.empty())
    throw ConfigError("valid.metrics has script, but valid.script is empty; give its command, or leave it out");
  if (!scripted && !c.script.empty() && c.enabled())
    throw ConfigError(
        fmt::format("valid.script has no effect, since valid.metrics are {}; add script to them", fmt::join(c.metrics, ", ")));
  check_tokenizer_name(c.tokenize, "valid.tokenize");
  if (c.source.empty() != c.target.empty()) {
    throw ConfigError(fmt::format("valid.{} is set, but valid.{} is not; name both files, or none for no validation",
                                  c.source.empty() ? "target" : "source", c.source.empty() ? "source" : "target"));
  }
  if (!c.source.empty() && !c.sets.empty())
    throw ConfigError("valid.source and valid.sets are both set; move the text of valid.source to the list, or leave the list out");
  if (c.source.empty() && c.sets.empty() && !c.metrics.empty()) {
    throw ConfigError(
        "valid.metrics are asked for, but there is nothing to validate on; name valid.source and valid.target, or set valid.metrics to []");
  }
  if (c.early_stopping > 0 && !c.enabled()) {
    throw ConfigError("valid.early-stopping needs a validation; name valid.source, valid.target and valid.metrics, or set it to 0");
  }
  const std::string& metric = c.early_stopping_metric;
  if (c.enabled() && metric != "first" && std::find(c.metrics.begin(), c.metrics.end(), metric) == c.metrics.end()) {
    throw ConfigError(fmt::format("valid.early-stopping-metric {} is not among valid.metrics {}; add it there, or choose one of these",
                                  metric, fmt::join(c.metrics, ", ")));
  }
}

// Checks the keys of a divided model, among others against those that need a whole model on every rank.
void check_parallel(const Config& c) {
  if (c.parallel.pipeline == 1) {
    if (c.parallel.micro_batches > 0)
      throw ConfigError("parallel.micro-batches does nothing without stages; set parallel.pipeline too, or see train.micro-batch-tokens");
    if (c.parallel.time_pieces > 0)
      throw ConfigError("parallel.time-pieces does nothing without stages; set parallel.pipeline too, or leave it out");
  }
  if (const size_t listed = c.parallel.stages.size(); listed > 0 && listed != static_cast<size_t>(c.parallel.pipeline))
    throw ConfigError(fmt::format("parallel.stages lists {}, but parallel.pipeline is {}; give as many numbers as there are stages",
                                  counted(static_cast<int64_t>(listed), "stage"), c.parallel.pipeline));
  check(c.parallel);
  if (c.parallel.ranks() == 1) return;
  require_shards(c.model, c.parallel.tensor);
  if (c.parallel.time_pieces > 0 && architecture_of(c.model.preset) != Architecture::gnmt)
    throw ConfigError(
        fmt::format("parallel.time-pieces is for recurrent models, and {} computes all positions of a sentence at once; leave it "
                    "out, or set model.preset to one of gnmt",
                    c.model.preset));
  if (c.parallel.hybrid) check_hybrid(c.model);
  const bool stages = c.parallel.pipeline > 1;
  const char* const key = stages ? c.parallel.tensor > 1 ? "parallel.pipeline and tensor" : "parallel.pipeline" : "parallel.tensor";
  const std::string divided = stages && c.parallel.tensor > 1 ? fmt::format("parallel.pipeline {} and tensor {} divide the model",
                                                                            c.parallel.pipeline, c.parallel.tensor)
                                                              : fmt::format("{} {} divides the model", key, c.parallel.ranks());
  if (family_of(c.strategy) == Family::asynchronous)
    throw ConfigError(
        fmt::format("{}, but with strategy {} each server would send its part at a different time; choose another strategy, or "
                    "set {} to 1",
                    divided, c.strategy.name, key));
  if (family_of(c.strategy) == Family::periodic && c.strategy.periodic.merge == MergeRule::radial)
    throw ConfigError(
        fmt::format("{}, but strategy.periodic.merge radial needs the length of whole displacements; set merge to mean", divided));
  if (c.train.objective == Objective::mixed)
    throw ConfigError(fmt::format("{}, but train.objective mixed samples from whole models; set {} to 1", divided, key));
}

void check_guard(const Config& c) {
  if (c.guard.mode != GuardMode::act) return;
  const auto refuse = [](const std::string& what) {
    throw ConfigError(fmt::format("guard.mode act goes back to a state that all ranks have, but {}; set guard.mode to warn", what));
  };
  if (const Family family = family_of(c.strategy); family == Family::periodic || family == Family::asynchronous)
    refuse(fmt::format("with strategy {} each rank has a state of its own", c.strategy.name));
  if (!c.train.batch_doubles_at.empty() || c.train.batch_follows_noise > 0)
    refuse("the batch grows, so that the run counts tokens, not updates");
  if (!c.data.stages.empty()) refuse("with data.stages the text, and so the loss, changes all at once");
  if (c.train.objective == Objective::mixed) refuse("with train.objective mixed a higher loss may be what is wanted");
}

}  // namespace

void check_settings(const Config& c) {
  if (!c.data.train.empty()) require_data(c, true);
  if (!c.data.stages.empty() && c.train.max_epochs > 0)
    throw ConfigError(
        "data.stages count target tokens, and epochs differ from stage to stage; end the run by train.max-tokens or "
        "max-steps, not by max-epochs");
  check(c.languages, "data");
  check_model(c);
  check_family(c.model);
  check_clip(c);
  check_vocab(c.vocab);
  check_train(c.train);
  check_strategy(c.strategy);
  require_whole_matrices(c);
  check_r_drop(c);
  check_guided_alignment(c);
  check_batch_growth(c);
  check_guard(c);
  if (family_of(c.strategy) != Family::synchronous && c.train.optimizer.ema > 0)
    throw ConfigError(
        fmt::format("train.ema is for strategies all-reduce and parameter-server; with {} set train.ema to 0", c.strategy.name));
  check_valid(c.valid);
  check_parallel(c);
}

void require_whole_matrices(const Config& c) {
  if (c.train.optimizer.optimizer != OptimizerKind::muon) return;
  const auto refuse = [](const std::string& what, const std::string& instead) {
    throw ConfigError(fmt::format("train.optimizer muon needs each weight matrix whole where it is updated, but {}; {}", what, instead));
  };
  if (family_of(c.strategy) == Family::asynchronous)
    refuse(fmt::format("each server of strategy {} has only parts", c.strategy.name), "choose all-reduce or parameter-server");
  if (c.parallel.tensor > 1) refuse("parallel.tensor divides them", "set it to 1");
}

void check_r_drop(const Config& c) {
  if (c.train.r_drop == 0) return;
  const auto refuse = [&](const std::string& what) { throw ConfigError(fmt::format("train.r-drop {:g} {}", c.train.r_drop, what)); };
  const bool transformer = architecture_of(c.model.preset) != Architecture::gnmt;
  if (std::max({c.model.dropout, transformer ? c.model.attention_dropout : 0, transformer ? c.model.feed_forward_dropout : 0}) == 0)
    refuse("compares two passes with different dropout, but there is none; set model.dropout, or leave train.r-drop out");
  if (c.train.objective == Objective::mixed)
    refuse("works only with the likelihood of references, but train.objective mixed uses samples; leave one of them out");
  if (c.parallel.tensor > 1 || c.parallel.hybrid)
    refuse(fmt::format("needs all probabilities of a token on one rank, but {} divides the output; leave it out, or train.r-drop",
                       c.parallel.hybrid ? "parallel.hybrid" : "parallel.tensor"));
  if (c.train.r_drop_from > 0 && c.train.max_minutes > 0)
    throw ConfigError(
        fmt::format("train.r-drop-from {:g} is a share of the run's updates, which train.max-minutes {:g} leaves open; end the run by "
                    "train.max-steps, max-tokens or max-epochs, or set train.r-drop-from to 0",
                    c.train.r_drop_from, c.train.max_minutes));
}

bool guides_attention(const Config& c) {
  return c.train.guided_alignment > 0 &&
         std::any_of(c.data.train.begin(), c.data.train.end(), [](const CorpusFiles& files) { return !files.alignment.empty(); });
}

void check_guided_alignment(const Config& c) {
  if (!guides_attention(c)) return;
  constexpr const char* kWhat = "a corpus has an alignment, which guides attention";
  constexpr const char* kOff = "set train.guided-alignment to 0, or leave the alignment out";
  if (architecture_of(c.model.preset) == Architecture::gnmt)
    throw ConfigError(
        fmt::format("{}, but that of model.preset {} is one for all layers and cannot be guided; {}", kWhat, c.model.preset, kOff));
  if (c.parallel.tensor > 1)
    throw ConfigError(fmt::format("{}, but parallel.tensor divides the heads among ranks; set it to 1, or {}", kWhat, kOff));
}

void check_batch_growth(const Config& c) {
  const TrainConfig& t = c.train;
  const bool doubles = !t.batch_doubles_at.empty(), follows = t.batch_follows_noise > 0;
  if (!doubles && !follows) return;
  const auto refuse = [](const char* key, const std::string& what) { throw ConfigError(fmt::format("train.{} {}", key, what)); };
  const char* const either = doubles ? "batch-doubles-at" : "batch-follows-noise";
  if (!std::is_sorted(t.batch_doubles_at.begin(), t.batch_doubles_at.end()))
    refuse("batch-doubles-at", "must be ascending shares of the run, such as 0.25, 0.5");
  constexpr double kMostTokens = 1e8;  // per batch, the same limit as that of batch-tokens
  if (static_cast<double>(t.batch_tokens) * std::exp2(t.batch_doubles_at.size()) > kMostTokens)
    refuse("batch-doubles-at", fmt::format("doubles {} target tokens {} times, to more than {:.0f}; give fewer shares", t.batch_tokens,
                                           t.batch_doubles_at.size(), kMostTokens));
  if (t.max_steps > 0)
    refuse(either,
           "counts the run in tokens, not in updates, whose tokens change; end it by train.max-tokens or max-epochs in place of "
           "train.max-steps");
  if (doubles && t.max_minutes > 0)
    refuse("batch-doubles-at",
           fmt::format("gives shares of the run, which train.max-minutes {:g} leaves open; end it by train.max-tokens or "
                       "max-epochs alone",
                       t.max_minutes));
  if (family_of(c.strategy) != Family::synchronous)
    refuse(either, fmt::format("works with strategies all-reduce and parameter-server, not with {}; choose one of those, or leave it out",
                               c.strategy.name));
  if (t.optimizer.sgd_after > 0) refuse(either, "counts tokens, but train.sgd-after counts updates; leave one of them out");
  if (t.objective == Objective::mixed)
    refuse(either, "does not work with train.objective mixed, whose samples are counted by update; leave it out");
}

void refuse_cleaning(const Config& config, const char* what) {
  if (config.clean.before_training)
    throw ConfigError(
        fmt::format("clean.before-training: {} takes its text as it is; run 'starling clean' with this configuration, then use "
                    "the train.yml that it writes",
                    what));
}

}  // namespace starling
