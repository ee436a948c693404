#!/usr/bin/env bash
# The arms of recipes/multi30k/optimizers.md's table: trains transformer-small (tiny: transformer-tiny, deep: that with 4+4 layers) on Multi30k by each of them, one thread,
# seed 1, and prints BLEU (beam 4) and cross-entropy of the validation set at the end of each run, and the seconds of the
# processor that it took.
# Usage: recipes/multi30k/arms.sh DIRECTORY [ARM...]     without arms: all, some hours. Data and program: find.sh.
set -euo pipefail
. "$(dirname "$0")/find.sh"
directory=${1:?usage: arms.sh DIRECTORY [ARM...]}
shift

linear="--train.schedule linear --train.learning-rate 2e-3 --train.ema 0.99"
short="--train.warmup 200"
deep="--train.schedule linear --train.learning-rate 4e-3 --train.ema 0.99 --train.batch-tokens 4000 --train.warmup 600 --train.max-tokens 24000000
  --model.preset transformer-tiny --model.encoder-layers 4 --model.decoder-layers 4 --model.feed-forward 256"
declare -A arms=(
  [inverse-sqrt-3.5M]="--train.schedule inverse-sqrt --train.learning-rate 1e-3 --train.warmup 1000 --train.ema 0.999 --train.max-tokens 3500000"
  [linear-3.5M]="$linear $short --train.max-tokens 3500000"
  [linear-4e-3-3.5M]="$linear $short --train.max-tokens 3500000 --train.learning-rate 4e-3"
  [linear-dropout-0.15-3.5M]="$linear $short --train.max-tokens 3500000 --model.dropout 0.15"
  [linear-dropout-0.15-beta2-0.995-3.5M]="$linear $short --train.max-tokens 3500000 --model.dropout 0.15 --train.beta2 0.995"
  [muon-3.5M]="$linear $short --train.max-tokens 3500000 --train.optimizer muon --train.learning-rate 3e-3"
  [muon-6e-3-3.5M]="$linear $short --train.max-tokens 3500000 --train.optimizer muon --train.learning-rate 6e-3"
  [muon-batch-4000-3.5M]="$linear --train.warmup 100 --train.max-tokens 3500000 --train.optimizer muon --train.learning-rate 4e-3 --train.batch-tokens 4000"
  [linear-dropout-0.2-5.2M]="$linear $short --train.max-tokens 5200000 --model.dropout 0.2"
  [batch-1000-dropout-0.2-5.2M]="$linear --train.batch-tokens 1000 --train.learning-rate 1.5e-3 --train.beta2 0.99 --train.ema 0.995 --train.warmup 400
    --train.max-tokens 5200000 --model.dropout 0.2"
  [sampling-dropout-0.15-5.2M]="$linear $short --train.max-tokens 5200000 --model.dropout 0.15 --data.subword-alpha 0.3"
  [muon-batch-4000-dropout-0.2-5.2M]="$linear --train.warmup 100 --train.max-tokens 5200000 --train.optimizer muon --train.learning-rate 3e-3 --train.batch-tokens 4000 --model.dropout 0.2"
  [r-drop-7M]="$linear --train.warmup 500 --train.max-tokens 7000000 --train.r-drop 5"
  [muon-batch-32000-dropout-0.2-7.5M]="$linear --train.warmup 25 --train.max-tokens 7500000 --train.optimizer muon --train.learning-rate 1e-2 --train.batch-tokens 32000 --model.dropout 0.2 --train.ema 0.9"
  [muon-10M]="$linear --train.warmup 200 --train.max-tokens 10000000 --train.optimizer muon --train.learning-rate 3e-3"
  [linear-14M]="$linear --train.warmup 500 --train.max-tokens 14000000"
  [linear-dropouts-0.3-14M]="$linear --train.warmup 500 --train.max-tokens 14000000 --model.attention-dropout 0.3 --model.feed-forward-dropout 0.3"
  [linear-vocabulary-4000-14M]="$linear --train.warmup 500 --train.max-tokens 14000000 --vocab.size 4000"
  [r-drop-late-14M]="$linear --train.warmup 500 --train.max-tokens 14000000 --train.r-drop 5 --train.r-drop-from 0.4"
  [tiny-20M]="$linear --train.warmup 500 --train.max-tokens 20000000 --model.preset transformer-tiny"
  [tiny-dropout-0.1-11M]="$linear --train.warmup 500 --train.max-tokens 11000000 --model.preset transformer-tiny --model.dropout 0.1"
  [tiny-dropout-0.1-20M]="$linear --train.warmup 500 --train.max-tokens 20000000 --model.preset transformer-tiny --model.dropout 0.1"
  [deep-dropout-0.2-24M]="$deep --model.dropout 0.2"
  [deep-dropout-0.3-24M]="$deep --model.dropout 0.3"
  [deep-muon-dropout-0.3-12M]="$deep --train.optimizer muon --train.learning-rate 6e-3 --train.warmup 300 --train.max-tokens 12000000 --model.dropout 0.3"
  [deep-muon-sampling-12M]="$deep --train.optimizer muon --train.learning-rate 6e-3 --train.warmup 300 --train.max-tokens 12000000 --model.dropout 0.3 --data.subword-alpha 0.3"
  [inverse-sqrt-20M]="--train.schedule inverse-sqrt --train.learning-rate 1e-3 --train.warmup 1000 --train.ema 0.999 --train.max-tokens 20000000"
)
[ $# -gt 0 ] || mapfile -t names < <(printf '%s\n' "${!arms[@]}" | sort -t- -k1,1)
[ $# -eq 0 ] || names=("$@")
for name in "${names[@]}"; do
  [ -n "${arms[$name]:-}" ] || { echo "arms.sh: there is no arm '$name'; choose from: ${!arms[*]}" >&2; exit 2; }
done
for name in "${names[@]}"; do
  run=$directory/$name
  TIMEFORMAT='%U'
  # shellcheck disable=SC2086  # several options
  { seconds=$({ time "$starling" train -c "$root/recipes/multi30k/config.yml" --train.output "$run" --train.threads 1 --train.max-steps 0 \
    "${files[@]}" \
    --valid.every 1000 ${arms[$name]} >&3 2>&3; } 2>&1); } 3>/dev/null
  echo "$name: $(grep -F '[valid] step' "$run/train.log" | tail -1 | sed 's/.*\[valid\] //'); $seconds s"
done
