#!/usr/bin/env bash
# Whether the guard rescues runs, and leaves healthy ones alone, on the demo's corpus:
#   - healthy: five seeds of a small Transformer and of a small GNMT; the guard must not go back (guard.mode act) nor warn;
#   - rate: a learning rate of 0.01 at a batch of 4,000 tokens, with normalisation behind the layers, with and without the guard, beside
#     a healthy rate;
#   - poison: a range of the training text whose targets are those of other lines, with and without the guard, beside the clean text.
# The last two print the validation's cross-entropy at the end, and how far it is from the healthy run's.
# Usage: bench/guard.sh STARLING [healthy|rate|poison]...   About 25 minutes on two cores.
set -euo pipefail
starling=$(realpath "${1:?usage: bench/guard.sh STARLING [healthy|rate|poison]...}")
shift
parts=("$@")
[[ ${#parts[@]} -gt 0 ]] || parts=(healthy rate poison)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$starling" demo-corpus --output "$out/corpus" >/dev/null
corpus=$out/corpus
common=(--data.source "$corpus/train.en" --data.target "$corpus/train.de" --vocab.size 2000
  --valid.source "$corpus/valid.en" --valid.target "$corpus/valid.de" --valid.metrics cross-entropy --log.progress never --log.every 50)
transformer=(--model.preset transformer-small --model.width 128 --model.feed-forward 512 --model.encoder-layers 2 --model.decoder-layers 2)
gnmt=(--model.preset gnmt-small --model.width 128)
train() {  # NAME OPTION...
  local name=$1
  shift
  "$starling" train --train.output "$out/$name" "$@" >"$out/$name.log" 2>&1 ||
    echo "  $name ended with status $?: $(tail -n 1 "$out/$name.log")"
}
score() { sed -n 's/.*"scores":{"cross-entropy":\([0-9.]*\).*/\1/p' "$out/$1/events.jsonl" 2>/dev/null | tail -n 1; }
rescues() { grep -c 'goes back from' "$out/$1/train.log" || true; }
row() {  # NAME HEALTHY
  awk -v name="$1" -v score="$(score "$1")" -v healthy="$(score "$2")" -v rescues="$(rescues "$1")" \
    'BEGIN { printf "  %-22s cross-entropy %.4f, %+.1f %% from the healthy run, %d rescues\n",
             name, score, 100 * (score / healthy - 1), rescues }'
}
for part in "${parts[@]}"; do
  echo "$part:"
  case $part in
    healthy)
      for model in transformer gnmt; do
        declare -n options=$model
        for seed in 1 2 3 4 5; do
          name=$model-$seed
          train $name "${common[@]}" "${options[@]}" --train.batch-tokens 1000 --train.max-steps 600 --train.seed $seed --guard.mode act
          records=$(grep -c '"type":"guard"' "$out/$name/events.jsonl" || true)
          echo "  $model, seed $seed: cross-entropy $(score $name), $records records of the guard"
        done
      done
      ;;
    rate)
      options=("${common[@]}" "${transformer[@]}" --model.norm post --model.encoder-layers 3 --model.decoder-layers 3
        --train.batch-tokens 4000 --train.max-steps 600 --train.warmup 50)
      train healthy-rate "${options[@]}" --train.learning-rate 0.001
      train high-without "${options[@]}" --train.learning-rate 0.01 --guard.mode off
      train high-with "${options[@]}" --train.learning-rate 0.01 --guard.mode act
      for name in healthy-rate high-without high-with; do row $name healthy-rate; done
      grep -h 'guard: ' "$out/high-with/train.log" | tail -n +2 | sed 's/^/  /' || true
      ;;
    poison)
      # As a stream, so that the range stays together: lines 40,001 to 44,000 have the targets of other lines.
      for pass in 1 2 3 4; do paste "$corpus/train.en" "$corpus/train.de"; done >"$out/clean.tsv"
      awk -F '\t' 'NR == FNR { target[FNR] = $2; next } FNR > 40000 && FNR <= 44000 { print $1 "\t" target[FNR + 7001]; next } { print }' \
        "$out/clean.tsv" "$out/clean.tsv" >"$out/poisoned.tsv"
      train vocabulary "${common[@]}" "${transformer[@]}" --train.max-steps 1
      options=("${transformer[@]}" --data.tsv - --data.window 500 --vocab.source "$out/vocabulary/vocab.spm" --train.batch-tokens 1000
        --train.max-steps 1200 --train.learning-rate 0.002 --train.warmup 100 --valid.source "$corpus/valid.en"
        --valid.target "$corpus/valid.de" --valid.metrics cross-entropy --log.progress never --log.every 50)
      train clean "${options[@]}" --guard.mode off <"$out/clean.tsv"
      train poison-without "${options[@]}" --guard.mode off <"$out/poisoned.tsv"
      train poison-with "${options[@]}" --guard.mode act <"$out/poisoned.tsv"
      for name in clean poison-without poison-with; do row $name clean; done
      grep -h 'guard: ' "$out/poison-with/train.log" | tail -n +2 | sed 's/^/  /' || true
      ;;
    *) echo "$part is none of healthy, rate, poison" >&2; exit 2 ;;
  esac
done
