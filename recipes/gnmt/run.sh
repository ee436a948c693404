#!/usr/bin/env bash
# Multi30k English-German with gnmt-small: trains with the published recipe, tunes the search on the validation set, prints BLEU (13a, cased)
# and chrF of test2016, and quantises.
# Usage: recipes/gnmt/run.sh [RUN_DIRECTORY] [starling train options, e.g. --train.max-minutes 25]
# Data: $STARLING_DATA/multi30k (default ../shared/data beside the repository); program: $STARLING (default build/release/starling).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
data=${STARLING_DATA:-$root/../shared/data}/multi30k
starling=${STARLING:-$root/build/release/starling}
run=${1:-run-gnmt}
shift || true
if [[ ! -f $data/train.en.gz ]]; then
  echo "There is no Multi30k in $data: set STARLING_DATA to a directory with multi30k/{train.{en,de}.gz,valid.{en,de},test2016.{en,de}}" >&2
  exit 1
fi

began=$SECONDS
"$starling" train -c "$root/recipes/gnmt/config.yml" --train.output "$run" \
  --data.source "$data/train.en.gz" --data.target "$data/train.de.gz" --valid.source "$data/valid.en" --valid.target "$data/valid.de" "$@"
echo "training took $((SECONDS - began)) s of wall clock, vocabulary and validation included"

"$starling" tune-search --model "$run" --source "$data/valid.en" --target "$data/valid.de" --beam 8
for beam in 1 4 8; do
  "$starling" translate --model "$run" --input "$data/test2016.en" --output "$run/test2016.beam$beam" --beam $beam
  "$starling" evaluate --hypotheses "$run/test2016.beam$beam" --references "$data/test2016.de" --metrics bleu,chrf
done
rm -rf "$run-int8"  # of an earlier call
"$starling" quantize --model "$run" --output "$run-int8" --source "$data/valid.en" --target "$data/valid.de"
