// OpenNMT-py's configuration, versions 2 and 3. What it leaves out has OpenNMT-py's default.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "migration/conversion.h"

namespace starling {
namespace {

void convert_corpora(PeerOptions& o) {
  const auto note_transforms = [&](const std::string& at, const std::set<std::string>& applied) {
    for (const std::string& transform : o.list(at + "transforms"))
      if (!applied.contains(transform))
        o.missing(fmt::format("{}transforms {}: not applied; text is split by a SentencePiece model, and long pairs are left out", at,
                              transform));
  };
  std::set<std::string> corpora;
  for (const std::string& name : o.names_below("data/")) corpora.insert(name.substr(0, name.find('/')));
  size_t number = 0;
  for (const std::string& corpus : corpora) {
    const std::string at = "data/" + corpus + "/";
    const std::string source = o.text(at + "path_src").value_or(""), target = o.text(at + "path_tgt").value_or("");
    if (corpus == "valid") {
      o.set("valid.source", source);
      o.set("valid.target", target);
    } else {
      const std::string to = fmt::format("data.train.{}.", number++);
      o.set(to + "source", source);
      o.set(to + "target", target);
      o.copy(at + "weight", to + "weight");
      if (o.has(at + "weight") && corpora.size() > 2)
        o.approximate(fmt::format(
            "{}weight: here how often an epoch shows a sentence of this corpus, there how many sentences are taken in turn", at));
      if (const auto prefix = o.text(at + "src_prefix")) o.set(to + "tag", *prefix);
    }
    note_transforms(at, {"sentencepiece", "filtertoolong", "prefix"});
  }
  note_transforms("", {"sentencepiece", "filtertoolong"});
  const std::string source = o.text("src_subword_model").value_or(""), target = o.text("tgt_subword_model").value_or(source);
  const bool joint = o.flag("share_vocab") || (!source.empty() && source == target);
  o.set("vocab.joint", joint ? "true" : "false");
  if (!source.empty()) o.set("vocab.source", source);
  if (!source.empty() && !joint) o.set("vocab.target", target);
  if (const double size = o.number("src_vocab_size").value_or(0); size > 0) o.set_count("vocab.size", size);
  o.take({"src_vocab", "tgt_vocab", "tgt_vocab_size", "vocab_size_multiple", "save_data", "overwrite", "src_words_min_frequency",
          "tgt_words_min_frequency", "skip_empty_level", "n_sample", "src_subword_type", "tgt_subword_type"});
  o.set_count("data.max-length", std::max(o.number("src_seq_length").value_or(192), o.number("tgt_seq_length").value_or(0)));
  const double alpha = o.number("src_subword_alpha").value_or(0);
  if (alpha > 0 && o.number("src_subword_nbest").value_or(1) != 1) o.set("data.subword-alpha", alpha);
  o.take({"tgt_subword_alpha", "tgt_subword_nbest", "src_subword_nbest"});
}

// Embeddings are scaled there where positions are added to them, and nowhere else.
void convert_positions(PeerOptions& o) {
  const bool none = o.has("position_encoding") && !o.flag("position_encoding"), sinusoids = o.flag("position_encoding");
  const double reach = o.number("max_relative_positions").value_or(0);
  if (reach > 0) {
    o.set_count("model.relative-positions", reach);
    if (sinusoids)
      o.missing("position_encoding with max_relative_positions: relative positions take the place of sinusoids");
    else
      o.set("model.embedding-scale", "1");
  } else if (reach < 0) {
    o.missing(fmt::format("max_relative_positions {}: neither rotary embeddings nor ALiBi; positions are sinusoids", reach));
  } else if (none) {
    o.missing("position_encoding false: a Transformer has sinusoids here, or model.relative-positions");
  }
}

// Returns the model's width.
double convert_layers(PeerOptions& o) {
  const std::string type = o.text("decoder_type").value_or(o.text("encoder_type").value_or("rnn"));
  o.take(
      {"encoder_type", "decoder_type", "param_init", "param_init_glorot", "global_attention", "global_attention_function", "model_type"});
  const double width = o.number("hidden_size").value_or(o.number("rnn_size").value_or(500)), layers = o.number("layers").value_or(2);
  o.take({"rnn_size", "word_vec_size", "src_word_vec_size", "tgt_word_vec_size"});
  if (type != "transformer") {
    o.set("model.preset", "gnmt-small");
    o.approximate(fmt::format("decoder_type {}: the recurrent models here are GNMT's", type));
  } else {
    o.set("model.preset", width >= 1024 ? "transformer-big" : "transformer-base");
    o.set_count("model.width", width);
    o.set_count("model.feed-forward", o.number("transformer_ff").value_or(2048));
    o.set_count("model.heads", o.number("heads").value_or(8));
    o.set("model.norm", "pre");
    o.copy("pos_ffn_activation_fn", "model.activation");
    convert_positions(o);
    o.set("model.attention-dropout", o.number("attention_dropout").value_or(0.1));
  }
  o.set_count("model.encoder-layers", o.number("enc_layers").value_or(layers));
  o.set_count("model.decoder-layers", o.number("dec_layers").value_or(layers));
  o.set("model.dropout", o.number("dropout").value_or(0.3));
  const bool all = o.flag("share_embeddings");
  o.set("model.tied-embeddings", all                                  ? (o.flag("share_decoder_embeddings") ? "all" : "none")
                                 : o.flag("share_decoder_embeddings") ? "decoder"
                                                                      : "none");
  if (all && !o.flag("share_decoder_embeddings"))
    o.approximate("share_embeddings without share_decoder_embeddings: no embeddings are shared");
  return width;
}

void convert_updates(PeerOptions& o, double width) {
  const double at_once = std::max(1.0, o.number("accum_count").value_or(1)) * std::max(1.0, o.number("world_size").value_or(1));
  const double size = o.number("batch_size").value_or(64);
  const bool tokens = o.text("batch_type").value_or("sents") == "tokens";
  o.set_count("train.batch-tokens", size * (tokens ? 1 : 25) * at_once);
  o.approximate(tokens ? "batch_size: target tokens without padding, where OpenNMT-py counts the longer side with padding"
                       : fmt::format("batch_size: {:.0f} sentences are taken for {:.0f} target tokens, 25 each", size, 25 * size));
  if (o.number("world_size").value_or(1) > 1) o.approximate("world_size: one process per card: starling launch -n N -- train ...");
  o.take({"gpu_ranks", "bucket_size", "num_workers", "prefetch_factor", "batch_size_multiple", "pool_factor", "queue_size", "accum_steps",
          "valid_batch_size", "max_generator_batches"});
  const std::string optimizer = o.text("optim").value_or("sgd");
  o.set("train.optimizer", optimizer == "fusedadam" ? "adam" : optimizer);
  o.set("train.beta1", o.number("adam_beta1").value_or(0.9));
  o.set("train.beta2", o.number("adam_beta2").value_or(0.999));
  const double rate = o.number("learning_rate").value_or(1), warmup = o.number("warmup_steps").value_or(4000);
  const std::string decay = o.text("decay_method").value_or("none");
  if (decay == "noam" || decay == "noamwd" || decay == "rsqrt") {
    o.set("train.schedule", "inverse-sqrt");
    o.set_count("train.warmup", warmup);
    const double peak = rate / std::sqrt(warmup) / (decay == "rsqrt" ? 1 : std::sqrt(width));
    o.set("train.learning-rate", fmt::format("{:.4g}", peak));
    o.approximate(fmt::format("learning_rate {} with {}: {:.4g} at the end of the warm-up", rate, decay, peak));
    if (decay == "rsqrt") o.approximate("decay_method rsqrt: the warm-up is linear, where OpenNMT-py's learning rate is constant");
  } else {
    o.set("train.schedule", "constant");
    o.set("train.warmup", "0");
    o.set("train.learning-rate", fmt::format("{}", rate));
    if (decay != "none") o.missing(fmt::format("decay_method {}: see train.schedule", decay));
  }
  o.set("train.clip-norm", o.number("max_grad_norm").value_or(5));
  o.set("train.label-smoothing", o.number("label_smoothing").value_or(0));
  o.set("train.loss-normalization", o.text("normalization").value_or("sents") == "tokens" ? "tokens" : "sentences");
  if (const double average = o.number("average_decay").value_or(0); average > 0) o.set("train.ema", 1 - average);
  o.set_count("train.max-steps", o.number("train_steps").value_or(100000));
  if (const double seed = o.number("seed").value_or(-1); seed >= 0) o.set_count("train.seed", seed);
  o.copy("train_from", "train.initial-model");
  if (const auto model = o.text("save_model")) o.set("train.output", *model);
  o.take({"model_dtype", "apex_opt_level", "start_decay_steps", "decay_steps", "learning_rate_decay", "average_every",
          "early_stopping_criteria", "tensorboard_log_dir", "exp", "exp_host", "log_file", "log_file_level", "verbose"});
  if (o.flag("tensorboard")) o.set("log.tensorboard", "true");
}

}  // namespace

Conversion convert_opennmt(const std::vector<PeerFile>& files) {
  PeerOptions options(files, 'O');
  convert_corpora(options);
  convert_updates(options, convert_layers(options));
  const bool validates = !options.names_below("data/valid/").empty();
  if (const double every = options.number("valid_steps").value_or(10000); validates) options.set_count("valid.every", every);
  if (const double patience = options.number("early_stopping").value_or(0); patience > 0 && validates)
    options.set_count("valid.early-stopping", patience);
  options.set_count("checkpoint.every", options.number("save_checkpoint_steps").value_or(5000));
  if (const double keep = options.number("keep_checkpoint").value_or(-1); keep > 0) options.set_count("checkpoint.keep", keep);
  options.set_count("log.every", options.number("report_every").value_or(50));
  return options.done();
}

}  // namespace starling
