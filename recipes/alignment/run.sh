#!/usr/bin/env bash
# What guided alignment does: trains the demo's model without and with links of its training text, two seeds each, and prints BLEU of the
# test set and, for its first 50 sentences, whose links were made by hand (gold.links), the alignment error rate.
# Usage: recipes/alignment/run.sh DIRECTORY [SEED...]
# Some 20 minutes on two cores. What is done is not done again. Program: $STARLING (default build/release/starling).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
starling=${STARLING:-$root/build/release/starling}
out=${1:?usage: run.sh DIRECTORY [SEED...]}
seeds=("${@:2}")
[[ ${#seeds[@]} -gt 0 ]] || seeds=(1 2)
mkdir -p "$out"
text=$out/text
[[ -d $text ]] || "$starling" demo-corpus --output "$text"
[[ -f $out/train.links ]] || "$starling" align --quiet --source "$text/train.en" --target "$text/train.de" -o "$out/train.links"
head -n 50 "$text/test.en" >"$out/gold.en"
head -n 50 "$text/test.de" >"$out/gold.de"
for seed in "${seeds[@]}"; do
  for kind in plain guided; do
    run=$out/$kind-$seed
    options=(--data.source "$text/train.en" --data.target "$text/train.de" --valid.source "$text/valid.en" --valid.target "$text/valid.de"
             --train.output "$run" --train.seed "$seed" --train.max-minutes 0)
    [[ $kind == plain ]] || options+=(--data.alignment "$out/train.links")
    "$starling" train -c "$root/recipes/demo.yml" "${options[@]}" >"$run.out" 2>&1
    "$starling" translate --quiet --model "$run" --input "$text/test.en" --output "$run/test"
    "$starling" score --model "$run" --source "$out/gold.en" --target "$out/gold.de" --alignment words | cut -f2 >"$run/links"
    echo "$kind, seed $seed: $("$starling" evaluate --hypotheses "$run/test" --references "$text/test.de" | sed -E 's/\|[^=]*//; s/ \(.*//')," \
      "$("$starling" evaluate --metrics aer --hypotheses "$run/links" --references "$root/recipes/alignment/gold.links" | sed -E 's/\|[^=]*//')"
  done
done
