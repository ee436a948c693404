#!/usr/bin/env bash
# Multi30k English-German with transformer-small: trains, translates test2016 with beam 4 and prints BLEU (13a, cased).
# Usage: recipes/multi30k/run.sh [RUN_DIRECTORY] [starling train options, e.g. --train.max-minutes 15]
# Data: $STARLING_DATA/multi30k (default ../shared/data beside the repository); program: $STARLING (default build/release/starling).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
data=${STARLING_DATA:-$root/../shared/data}/multi30k
starling=${STARLING:-$root/build/release/starling}
run=${1:-run-multi30k}
shift || true
if [[ ! -f $data/train.en.gz ]]; then
  echo "There is no Multi30k in $data: set STARLING_DATA to a directory with multi30k/{train.{en,de}.gz,valid.{en,de},test2016.{en,de}}" >&2
  exit 1
fi

began=$SECONDS
"$starling" train -c "$root/recipes/multi30k/config.yml" --train.output "$run" \
  --data.source "$data/train.en.gz" --data.target "$data/train.de.gz" --valid.source "$data/valid.en" --valid.target "$data/valid.de" "$@"
echo "training took $((SECONDS - began)) s of wall clock, vocabulary and validation included"

"$starling" translate --model "$run" --input "$data/test2016.en" --output "$run/test2016.translated" --beam 4
"$starling" evaluate --hypotheses "$run/test2016.translated" --references "$data/test2016.de" --metrics bleu,chrf
