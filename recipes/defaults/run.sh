#!/usr/bin/env bash
# What a plain `starling train` reaches beside a tuned recipe: trains a corpus with no option but its files, then with as many tokens by
# recipes/multi30k/config.yml, chosen from some twenty whole runs there, or, with a budget, by what `starling tune` finds around the plain
# run; and prints BLEU and chrF of the test set for both.
# Usage: recipes/defaults/run.sh CORPUS DIRECTORY [TUNE_BUDGET, e.g. 1h]
#   CORPUS: multi30k, or a language of LibreOffice's texts (recipes/libreoffice): de, ja ...
# One thread a run, so that two corpora may run side by side. A run that was stopped goes on where it was with the same command. Program: recipes/multi30k/find.sh.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
corpus=${1:?usage: run.sh CORPUS DIRECTORY [TUNE_BUDGET]}
out=${2:?usage: run.sh CORPUS DIRECTORY [TUNE_BUDGET]}
budget=${3:-}
mkdir -p "$out"
if [[ $corpus == multi30k ]]; then
  . "$root/recipes/multi30k/find.sh"
  target=de train=$data/train valid=$data/valid test=$data/test2016 packed=.gz
else
  starling=${STARLING:-$root/build/release/starling}
  target=$corpus text=$out/text packed=
  [[ -d $text ]] || "$root/recipes/libreoffice/corpus.sh" "$corpus" "$text"
  train=$text/train valid=$text/valid test=$text/test
fi
files=(--train.threads 1 --data.source "$train.en$packed" --data.target "$train.$target$packed" --valid.source "$valid.en" --valid.target "$valid.$target")

report() {  # NAME: the run's best model on the test set
  [[ -f $out/$1/test ]] || "$starling" translate --model "$out/$1" --input "$test.en" --output "$out/$1/test" --beam 4
  echo "$corpus, $1: $(grep -F '[valid] step' "$out/$1/train.log" | tail -n 1 | sed 's/.*\[valid\] //')"
  "$starling" evaluate --hypotheses "$out/$1/test" --references "$test.$target" --metrics bleu,chrf
}

"$starling" train "${files[@]}" --train.output "$out/plain"
report plain
tokens=$(sed -n 's/^ *max-tokens: \([0-9]*\).*/\1/p' "$out/plain/config.yml")
if [[ -z $budget ]]; then
  recipe=$root/recipes/multi30k/config.yml
  files+=(--data.source-language "" --data.target-language "")
else
  "$starling" tune -c "$out/plain/config.yml" --output "$out/tune" --budget "$budget" --jobs 1
  recipe=$out/tune/best.yml
fi
"$starling" train -c "$recipe" "${files[@]}" --train.max-steps 0 --train.max-tokens "$tokens" --train.output "$out/tuned"
report tuned
