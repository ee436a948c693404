#!/usr/bin/env bash
# Multi30k English-German with transformer-small: trains, translates test2016 with beam 4 and prints BLEU (13a, cased).
# Usage: recipes/multi30k/run.sh [RUN_DIRECTORY] [starling train options, e.g. --train.max-minutes 15]
# Data and program: find.sh.
set -euo pipefail
. "$(dirname "$0")/find.sh"
run=${1:-run-multi30k}
shift || true

began=$SECONDS
"$starling" train -c "$root/recipes/multi30k/config.yml" --train.output "$run" "${files[@]}" "$@"
echo "training took $((SECONDS - began)) s of wall clock, vocabulary and validation included"

"$starling" translate --model "$run" --input "$data/test2016.en" --output "$run/test2016.translated" --beam 4
"$starling" evaluate --hypotheses "$run/test2016.translated" --references "$data/test2016.de" --metrics bleu,chrf
