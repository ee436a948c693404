#!/usr/bin/env bash
# Fine-tuning without options beside the advice of docs/guides/fine-tuning.md before there were choices, in three cases: another domain, another
# variant of the language, and few pairs. Prints BLEU and chrF of the new text's test set, and BLEU of the old one's, for the model as it
# was and for both ways.
# Usage: recipes/fine-tuning/run.sh DIRECTORY [CASE...]
#   CASE: domain, variant or few; all three if not given.
# One thread a run (THREADS=2 takes two). A run that was stopped goes on where it was with the same command, and what is done is not done
# again. Models that begin are trained on $BASE_TOKENS target tokens, 6 million if not given; the advice takes $ADVICE_STEPS updates at
# most, 5,000 if not given. Text: Multi30k as recipes/multi30k/find.sh says, and LibreOffice's translations, which
# recipes/libreoffice/corpus.sh fetches.
set -euo pipefail
. "$(cd "$(dirname "$0")/../.." && pwd)/recipes/multi30k/find.sh"
out=${1:?usage: run.sh DIRECTORY [CASE...]}
shift
cases=("$@")
[[ ${#cases[@]} -gt 0 ]] || cases=(domain variant few)
mkdir -p "$out"
threads=(--train.threads "${THREADS:-1}")

text() {  # LANGUAGE: LibreOffice's text in $out/text-LANGUAGE
  [[ -f $out/text-$1/test.en ]] || { rm -rf "$out/text-$1"; "$root/recipes/libreoffice/corpus.sh" "$1" "$out/text-$1"; }
}

first() {  # LANGUAGE PAIRS DIRECTORY: the first pairs of LibreOffice's training text
  mkdir -p "$3"
  for side in en "$1"; do head -n "$2" "$out/text-$1/train.$side" > "$3/train.$side"; done
}

base() {  # NAME OPTIONS...: a model to begin with
  "$starling" train "${threads[@]}" --train.max-tokens "${BASE_TOKENS:-6000000}" --train.output "$out/$1" "${@:2}"
}

score() {  # MODEL TEST LANGUAGE: BLEU and chrF
  local translated
  translated=$out/scores/$(basename "$1").$(tr / _ <<< "${2#"$out"/}")
  mkdir -p "$out/scores"
  [[ -s $translated ]] || "$starling" translate --quiet --model "$1" --input "$2.en" --output "$translated" --beam 4
  "$starling" evaluate --hypotheses "$translated" --references "$2.$3" --metrics bleu,chrf | sed -E 's/^[^=]* = ([0-9.]+).*/\1/' | paste -sd ' '
}

row() {  # CASE WAY MODEL NEW_TEST OLD_TEST LANGUAGE [OLD_LANGUAGE]
  local new old
  new=$(score "$3" "$4" "$6") old=$(score "$3" "$5" "${7:-$6}")
  echo "| $1 | $2 | ${new% *} | ${new#* } | ${old% *} |" | tee -a "$out/table.new"
}

tune() {  # CASE BASE TEXT LANGUAGE NEW_TEST OLD_TEST [OLD_LANGUAGE]: both ways
  local new=("${threads[@]}" --train.initial-model "$out/$2" --data.source "$3/train.en" --data.target "$3/train.$4"
    --valid.source "$out/text-$4/valid.en" --valid.target "$out/text-$4/valid.$4")
  row "$1" "the model as it was" "$out/$2" "$5" "$6" "$4" "${7:-$4}"
  "$starling" train "${new[@]}" --train.output "$out/$1-chosen"
  row "$1" "without options" "$out/$1-chosen" "$5" "$6" "$4" "${7:-$4}"
  "$starling" train "${new[@]}" --train.output "$out/$1-advice" --train.learning-rate 1e-4 --train.warmup 200 --train.warmup-share 0 \
    --train.schedule inverse-sqrt --train.batch-tokens 4000 --train.max-steps "${ADVICE_STEPS:-5000}" --valid.every 250 --valid.early-stopping 8
  row "$1" "the advice before" "$out/$1-advice" "$5" "$6" "$4" "${7:-$4}"
}

rm -f "$out/table.new"
for case in "${cases[@]}"; do
  case $case in
    domain | few)
      text de
      base captions "${files[@]}"
      [[ -f $out/test2016.en ]] || cp "$data"/test2016.{en,de} "$out/"
      first de "$([[ $case == few ]] && echo 500 || echo 20000)" "$out/$case"
      tune "$case" captions "$out/$case" de "$out/text-de/test" "$out/test2016"
      ;;
    variant)
      text pt-br && text pt
      base brazil --data.source "$out/text-pt-br/train.en" --data.target "$out/text-pt-br/train.pt-br" \
        --valid.source "$out/text-pt-br/valid.en" --valid.target "$out/text-pt-br/valid.pt-br"
      first pt 5000 "$out/variant"
      tune variant brazil "$out/variant" pt "$out/text-pt/test" "$out/text-pt-br/test" pt-br
      ;;
    *) echo "there is no case $case; choose domain, variant or few" >&2; exit 2 ;;
  esac
done
{ echo "| case | way | BLEU | chrF | BLEU of the old text |"; echo "|---|---|---|---|---|"; cat "$out/table.new"; } > "$out/table.md"
echo "the table is in $out/table.md"
