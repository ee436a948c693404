#!/usr/bin/env bash
# Multi30k English-German with gnmt-small: trains with the published recipe, tunes the search on the validation set, prints BLEU (13a, cased)
# and chrF of test2016, and quantises.
# Usage: recipes/gnmt/run.sh [RUN_DIRECTORY] [starling train options, e.g. --train.max-minutes 25]
# Data and program: ../multi30k/find.sh.
set -euo pipefail
. "$(dirname "$0")/../multi30k/find.sh"
run=${1:-run-gnmt}
shift || true

began=$SECONDS
"$starling" train -c "$root/recipes/gnmt/config.yml" --train.output "$run" "${files[@]}" "$@"
echo "training took $((SECONDS - began)) s of wall clock, vocabulary and validation included"

"$starling" tune-search --model "$run" --source "$data/valid.en" --target "$data/valid.de" --beam 8
for beam in 1 4 8; do
  "$starling" translate --model "$run" --input "$data/test2016.en" --output "$run/test2016.beam$beam" --beam $beam
  "$starling" evaluate --hypotheses "$run/test2016.beam$beam" --references "$data/test2016.de" --metrics bleu,chrf
done
rm -rf "$run-int8"  # of an earlier call
"$starling" quantize --model "$run" --output "$run-int8" --source "$data/valid.en" --target "$data/valid.de"
