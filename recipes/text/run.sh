#!/usr/bin/env bash
# What cleaning brings: spoils 40 % of Multi30k in eight ways (spoil.py), cleans it by the defaults, and trains three times each on the pairs
# that were left alone, on all, and on what cleaning keeps. Prints BLEU (13a) and chrF of test2016, beam 4, and how much of the loss came back.
# Usage: recipes/cleaning/run.sh [DIRECTORY] [SEEDS, default "1 2 3"]; what is done already in DIRECTORY is not done again.
# Data and program: recipes/multi30k/find.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../multi30k/find.sh"
out=${1:-run-cleaning} seeds=${2:-1 2 3}
mkdir -p "$out"
out=$(cd "$out" && pwd)

if [[ ! -d $out/cleaned ]]; then
  "$here/spoil.py" "$data/train.en.gz" "$data/train.de.gz" "$out" | tee "$out/spoiled"
  "$starling" clean --data.tsv "$out/dirty.tsv" --data.source-language en --data.target-language de -o "$out/cleaned"
fi
for seed in $seeds; do
  for arm in clean dirty cleaned; do
    text=$out/$arm.tsv
    [[ $arm == cleaned ]] && text=$out/cleaned/kept.tsv.zst
    train_and_score "$out/$arm-$seed" "$here/config.yml" --train.seed "$seed" --data.tsv "$text"
  done
done
"$here/table.py" "$out" clean dirty cleaned
