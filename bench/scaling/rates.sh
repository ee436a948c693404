#!/usr/bin/env bash
# The boundary of the learning rate for large batches: cross-entropy on the validation set of Multi30k after a fixed number of updates, for two
# batches and several peak rates; linear warm-up, then inverse square root, no clipping, post-norm (the published range 0.001 to 0.005 and the
# divergence at 0.01 are of such a Transformer). STARLING_DATA names the data.
# Usage: bench/scaling/rates.sh STARLING [UPDATES=100]          about 6 minutes
set -euo pipefail
starling=$(realpath "$1") updates=${2:-100}
data=${STARLING_DATA:-../shared/data}/multi30k
[[ -f $data/train.en.gz ]] || { echo "rates.sh: $data has no train.en.gz; set STARLING_DATA" >&2; exit 77; }
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
printf '%12s %10s %22s %18s\n' "batch tokens" "peak rate" "train loss, last" "valid, nats/token"
for batch in 4000 16000; do
  for rate in 0.001 0.005 0.01 0.03; do
    "$starling" train --data.source "$data/train.en.gz" --data.target "$data/train.de.gz" --valid.source "$data/valid.en" --valid.target "$data/valid.de" \
      --valid.metrics cross-entropy --vocab.source "$out/vocab.spm" --vocab.size 4000 --model.preset transformer-tiny --model.encoder-layers 4 \
      --model.decoder-layers 4 --model.norm post --model.dropout 0.1 --train.output "$out/$batch-$rate" --train.batch-tokens $batch \
      --train.max-steps "$updates" --valid.every "$updates" --checkpoint.every "$updates" --train.learning-rate $rate --train.warmup 50 \
      --train.clip-norm 0 --log.every 25 --log.progress never >"$out/log" 2>&1 || true
    loss=$(sed -n 's/.*| loss \([^ ]*\) .*/\1/p' "$out/log" | tail -n 1) valid=$(sed -n 's/.*| cross-entropy \([0-9.]*\) .*/\1/p' "$out/log" | head -n 1)
    printf '%12s %10s %22s %18s\n' $batch $rate "${loss:-none}" "${valid:-diverged: $(grep -o 'the [a-z]* of .* is not finite' "$out/log" | head -c 50)}"
  done
done
