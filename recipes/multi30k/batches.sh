#!/usr/bin/env bash
# How many target tokens a model needs to a cross-entropy by the batch, and what the logged noise scale says of it
# (recipes/multi30k/optimizers.md, "What a batch needs"). Each batch is a run with a constant rate that grows with the batch's root. Prints for
# each batch the tokens to the target cross-entropy of the validation set and the mean noise scale on the way; then the fewest tokens T and the critical
# batch C of tokens = T (1 + batch / C), the straight line with the least squares of relative errors.
# Usage: [TARGET=nats] recipes/multi30k/batches.sh DIRECTORY gnmt|tiny [BATCH...]     half an hour of one core for gnmt, 20 minutes for
# tiny; a finished run in the directory is used again. Data and program: find.sh.
set -euo pipefail
. "$(dirname "$0")/find.sh"
directory=${1:?usage: batches.sh DIRECTORY gnmt|tiny [BATCH...]}
model=${2:?usage: batches.sh DIRECTORY gnmt|tiny [BATCH...]}
shift 2
batches=(500 1000 2000 4000 8000)
[ $# -eq 0 ] || batches=("$@")
case $model in
  gnmt) target=${TARGET:-2} rate=4e-3 fewest=1300000
    options="--model.preset gnmt-small --model.encoder-layers 1 --model.readout context --model.attention normalized --model.dropout 0.2 --train.clip-norm 5" ;;
  tiny) target=${TARGET:-2.1} rate=2e-3 fewest=2400000 options="--model.preset transformer-tiny --model.dropout 0.1 --train.clip-norm 1" ;;
  *) echo "batches.sh: there is no model '$model'; choose gnmt or tiny" >&2; exit 2 ;;
esac

for batch in "${batches[@]}"; do
  run=$directory/$model-$batch
  grep -qs '"reason":"complete' "$run/events.jsonl" && continue
  read -r peak ema most < <(awk -v b="$batch" -v r=$rate -v t=$fewest \
    'BEGIN { printf "%.3g %.5f %d\n", r * sqrt(b / 1000), 0.99 ^ (b / 1000), t * (1 + b / 8000) }')
  # shellcheck disable=SC2086  # several options
  "$starling" train --train.output "$run" --train.threads 1 "${files[@]}" --valid.metrics cross-entropy --valid.every $(((100000 / batch) / 5 * 5)) \
    --vocab.size 4000 $options --train.batch-tokens "$batch" --train.micro-batch-tokens $((batch / 2)) --train.schedule constant \
    --train.learning-rate "$peak" --train.warmup-tokens 200000 --train.beta2-tokens 100000 --train.ema "$ema" --train.max-steps 0 \
    --train.max-tokens "$most" --log.every 5 >&2
done

for batch in "${batches[@]}"; do
  # shellcheck disable=SC2016  # awk's fields
  sed -nE 's/.*"type":"(report|validation)".*"step":([0-9]+).*"target_tokens":([0-9]+).*"noise_scale":([0-9.]+|null).*/\1 \2 \3 \4/p
           s/.*"type":"validation".*"step":([0-9]+).*"cross-entropy":([0-9.]+).*/validation \1 \2/p' "$directory/$model-$batch/events.jsonl" \
    | awk -v batch="$batch" -v target="$target" '
      found { next }
      $1 == "report" { tokens += $3; at[$2] = tokens; if ($4 != "null") { noise += $4; n++ } }
      $1 == "validation" && $3 <= target && before > target {
        t = before_tokens + (at[$2] - before_tokens) * (before - target) / (before - $3)
        printf "batch %d: %.3f million tokens to %s, noise scale %.0f\n", batch, t / 1e6, target, noise / n
        found = 1 }
      $1 == "validation" { before = $3; before_tokens = at[$2] }
      END { if (!found) printf "batch %d: %s not crossed in %.3f million tokens (%.3f), noise scale %.0f\n", batch, target, tokens / 1e6, before, n ? noise / n : 0 }'
done | awk '
  # y = tokens, x = batch: weights 1 / y^2
  { print }
  / million tokens to / { x = $2 + 0; y = $3; w = 1 / (y * y); s += w; sx += w * x; sy += w * y; sxx += w * x * x; sxy += w * x * y; noise += $NF; n++ }
  END {
    if (n < 3) { print "too few batches reached the target for a fit"; exit }
    slope = (s * sxy - sx * sy) / (s * sxx - sx * sx); fewest = (sy - slope * sx) / s
    printf "fewest tokens %.3f million, critical batch %.0f tokens; mean noise scale %.0f\n", fewest, fewest / slope, noise / n }'
