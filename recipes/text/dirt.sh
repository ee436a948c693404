#!/usr/bin/env bash
# What cleaning brings: spoils 40 % of Multi30k in eight ways (spoil.py), cleans it by the defaults, and trains on the pairs that were left
# alone, on all of them, and on what cleaning keeps, once for each seed. Prints BLEU (13a) and chrF of test2016 with beam 4.
# Usage: recipes/text/dirt.sh [DIRECTORY] [SEEDS, default "1 2 3"] [starling train options]; what is done in DIRECTORY is not done again.
# Data and program: recipes/multi30k/find.sh. About half an hour on two cores.
set -euo pipefail
. "$(dirname "$0")/arms.sh"
out=${1:-run-dirt} seeds=${2:-1 2 3}
shift $(($# < 2 ? $# : 2))
mkdir -p "$out"

if [[ ! -d $out/cleaned ]]; then
  "$here/spoil.py" "$data/train.en.gz" "$data/train.de.gz" "$out"
  "$starling" clean --data.tsv "$out/dirty.tsv" --data.source-language en --data.target-language de -o "$out/cleaned"
fi
for seed in $seeds; do
  train_and_score "$out/clean-$seed" --data.tsv "$out/clean.tsv" --train.seed "$seed" "$@"
  train_and_score "$out/dirty-$seed" --data.tsv "$out/dirty.tsv" --train.seed "$seed" "$@"
  train_and_score "$out/cleaned-$seed" --data.tsv "$out/cleaned/kept.tsv.zst" --train.seed "$seed" "$@"
done
table "$out" clean dirty cleaned
