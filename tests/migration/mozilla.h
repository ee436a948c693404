// A configuration that other programs' users have, for tests that convert it and train with it.
#pragma once

namespace starling {

// A teacher of Mozilla's pipeline, with what the pipeline gives on the command line.
inline constexpr const char* kMozilla = R"(
train-sets: [corpus.en.gz, corpus.de.gz]
valid-sets: [devset.en, devset.de]
vocabs: [vocab.spm, vocab.spm]
model: models/model.npz
dim-vocabs: [32000, 32000]
type: transformer
enc-depth: 6
dec-depth: 2
transformer-decoder-autoreg: rnn
dec-cell: ssru
dim-emb: 1024
transformer-dim-ffn: 4096
transformer-heads: 16
transformer-postprocess: dan
transformer-preprocess: ""
transformer-ffn-activation: relu
transformer-dropout: 0.1
tied-embeddings-all: true
label-smoothing: 0.1
exponential-smoothing: 0.0001
learn-rate: 0.0003
lr-decay-inv-sqrt: [16000]
lr-warmup: "16000"
optimizer-params: [0.9, 0.98, 1e-09]
clip-norm: 0
cost-type: ce-mean-words
mini-batch-words: 5000
optimizer-delay: 2
devices: [0, 1]
disp-freq: "1000"
save-freq: "5000"
valid-freq: "5000"
early-stopping: 20
valid-metrics: [chrf, ce-mean-words, bleu-detok]
beam-size: 12
normalize: 1.0
sentencepiece-options: --character_coverage=1.0 --byte_fallback --split_digits --user_defined_symbols=__source__,__target__
guided-alignment: corpus.aln.gz
guided-alignment-cost: ce
keep-best: true
overwrite: true
shuffle: batches
after: 10e
seed: 1234
quiet-translation: true
unheard-of: 5
)";

}  // namespace starling
