# Sourced by the recipes on Multi30k: sets root, data, files and starling, or says what is missing; and gleu_and_bleu.
# Data: $STARLING_DATA/multi30k (default ../shared/data beside the repository); program: $STARLING (default build/release/starling).
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
data=${STARLING_DATA:-$root/../shared/data}/multi30k
starling=${STARLING:-$root/build/release/starling}
if [[ ! -f $data/train.en.gz ]]; then
  echo "There is no Multi30k in $data: set STARLING_DATA to a directory with multi30k/{train.{en,de}.gz,valid.{en,de},test2016.{en,de}}" >&2
  exit 1
fi

# Options of starling train.
# shellcheck disable=SC2034  # for those that source this
files=(--data.source "$data/train.en.gz" --data.target "$data/train.de.gz" --valid.source "$data/valid.en" --valid.target "$data/valid.de")

gleu_and_bleu() {  # MODEL NAME: prints both of the validation and the test set, and keeps the translations beside NAME
  local set
  for set in valid test2016; do
    "$starling" translate --quiet --model "$1" --input "$data/$set.en" --output "$2.$set.translated"
    echo "$2 $set: $("$starling" evaluate --hypotheses "$2.$set.translated" --references "$data/$set.de" --metrics gleu,bleu \
      | sed -E 's/^[^=]* = ([0-9.]+).*/\1/' | paste -sd ' ') (GLEU, BLEU)"
  done
}
