#!/usr/bin/env bash
# A model of ours in Firefox's engine: it is exported as .bin in f32 and with 8-bit integers, bergamot-translator's WebAssembly translates
# the lines with both, and so does Starling, which reads the integers back. Prints how many lines are equal, and BLEU. Needs Node.js and
# the npm package @browsermt/bergamot-translator installed in the folder PACKAGE. The model must be one that Marian can have:
# docs/guides/import.md.
# Usage: PACKAGE=DIRECTORY bench/peers/bergamot.sh STARLING MODEL LINES REFERENCES
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
starling=$(realpath "$1") model=$(realpath "$2") lines=$(realpath "$3") references=$(realpath "$4")
cd "${PACKAGE:?the folder where @browsermt/bergamot-translator is installed}"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
"$starling" export --to bergamot -m "$model" -o "$out/f32" >/dev/null
"$starling" export --to bergamot --int8 -m "$model" -o "$out/int8" >/dev/null
"$starling" import "$out/int8/model.bin" --vocab "$out/int8/vocab.spm" -o "$out/again" >/dev/null
bleu() {
  "$starling" evaluate --hypotheses "$1" --references "$references" --metrics bleu 2>/dev/null | sed 's/^[^=]* = \([0-9.]*\) .*/\1/'
}
printf '%-5s %-5s %12s %10s %11s\n' type beam "equal lines" "BLEU here" "BLEU there"
for beam in 1 4; do
  for type in f32 int8; do
    ours=$model gemm=float32
    [[ $type == f32 ]] || ours=$out/again gemm=int8shiftAll
    node "$here/bergamot.mjs" "$out/$type/model.bin" "$out/$type/vocab.spm" gemm-precision=$gemm skip-cost=false beam-size=$beam \
      normalize=0 max-length-factor=2 <"$lines" >"$out/theirs.txt"
    "$starling" translate --model "$ours" --precision $type --beam $beam --length-penalty 0 --max-length-factor 2 \
      --max-length-offset 0 --replace-ended=false --min-length 0 \
      <"$lines" >"$out/ours.txt" 2>/dev/null
    equal=$(paste -d '\n' "$out/ours.txt" "$out/theirs.txt" | awk 'NR % 2 { a = $0; next } { n += a == $0 } END { print n "/" NR / 2 }')
    printf '%-5s %-5s %12s %10s %11s\n' $type $beam "$equal" "$(bleu "$out/ours.txt")" "$(bleu "$out/theirs.txt")"
  done
done
