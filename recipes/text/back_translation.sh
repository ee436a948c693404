#!/usr/bin/env bash
# What back-translation brings: a small parallel text, the first 5,000 pairs of Multi30k, and a larger one of the target language alone, the
# German side of the other 24,000. A model of the other direction, trained on the small text, translates the large one back; models are
# trained on the small text alone, with the synthetic pairs, and with these behind a tag. Prints BLEU (13a) and chrF of test2016 with beam 4.
# Usage: recipes/text/back_translation.sh [DIRECTORY] [SEEDS, default "1 2 3"] [starling train options]; what is done in DIRECTORY is not
# done again. Data and program: recipes/multi30k/find.sh. About half an hour on two cores.
set -euo pipefail
. "$(dirname "$0")/arms.sh"
out=${1:-run-back-translation} seeds=${2:-1 2 3} pairs=5000
shift $(($# < 2 ? $# : 2))
mkdir -p "$out"

for side in en de; do
  [[ -f $out/train.$side ]] || { gzip -dc "$data/train.$side.gz" > "$out/all.$side"; head -n $pairs "$out/all.$side" > "$out/train.$side"; }
done
[[ -f $out/alone.de ]] || tail -n +$((pairs + 1)) "$out/all.de" > "$out/alone.de"
if [[ ! -d $out/synthetic ]]; then
  "$starling" train -c "$here/config.yml" --train.output "$out/reverse" --data.source "$out/train.de" \
    --data.target "$out/train.en" --data.source-language de --data.target-language en --valid.source "$data/valid.de" \
    --valid.target "$data/valid.en" "$@"
  "$starling" synthesize --model "$out/reverse" --input "$out/alone.de" --output "$out/synthetic"
fi
parallel=(--data.train.0.source "$out/train.en" --data.train.0.target "$out/train.de")
synthetic=(--data.train.1.tsv "$out/synthetic/text.tsv.zst")
for seed in $seeds; do
  train_and_score "$out/parallel-$seed" "${parallel[@]}" --train.seed "$seed" "$@"
  train_and_score "$out/synthetic-$seed" "${parallel[@]}" "${synthetic[@]}" --train.seed "$seed" "$@"
  train_and_score "$out/tagged-$seed" "${parallel[@]}" "${synthetic[@]}" --data.train.1.tag '<bt>' --train.seed "$seed" "$@"
done
table "$out" parallel synthetic tagged
