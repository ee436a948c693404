#!/usr/bin/env bash
# A Transformer with relative positions and random weights, converted by CTranslate2 from OpenNMT-py's names, in CTranslate2 and in Starling:
# how many of 50 translations are the same, and the largest difference of their log-probabilities, also after the model has been exported
# from Starling and been read by CTranslate2 again. CTranslate2 computes in f32, also with 8-bit weights, since not each build has products
# of integers. Needs CTranslate2 as ctranslate2.sh does, and a Python with NumPy.
# Usage: CTRANSLATE2=DIRECTORY bench/peers/ct2_relative.sh STARLING [PYTHON]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
starling=$(realpath "$1") python=${2:-python3}
ct2=$(realpath "${CTRANSLATE2:?the directory of CTranslate2}")
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
g++ -std=c++20 -O2 -I"$ct2/include" -I"$ct2/build/include" "$here/ct2_relative.cpp" -o "$out/driver" -L"$ct2/build" \
  -Wl,-rpath,"$ct2/build" -lctranslate2
# Compares the tables OURS and THEIRS of tokens and log-probabilities.
compare() {
  paste "$2" "$3" | awk -F '\t' -v name="$1" '
    { same += $1 == $3; tokens += split($3, token, " "); d = $2 - $4; if (d < 0) d = -d; if (d > most) most = d }
    END { printf "%-24s %3d of %d lines of %.1f tokens the same, log-probabilities within %.6f\n", name, same, NR, tokens / NR, most }'
}
# Starling's translations, and its scores of CTranslate2's: MODEL PRECISION THEIRS.
ours() {
  "$starling" translate --model "$1" --source-pieces --target-pieces --precision "$2" --quiet --beam 4 --length-penalty 0 \
    --allow-unknown <"$out/lines" >"$out/text"
  cut -f 1 "$3" >"$out/target"
  "$starling" score --model "$1" --pieces --precision "$2" --source "$out/lines" --target "$out/target" -o "$out/scores" 2>/dev/null
  paste "$out/text" <(cut -f 1 "$out/scores")
}
for form in float32 int8; do
  "$python" "$here/ct2_relative.py" "$ct2" "$out/$form" "$out/lines" ${form/float32/}
  "$out/driver" "$out/$form" <"$out/lines" >"$out/theirs"
  "$starling" import "$out/$form" -o "$out/$form.model" >/dev/null
  ours "$out/$form.model" f32 "$out/theirs" >"$out/ours"
  compare "$form" "$out/ours" "$out/theirs"
  "$starling" export --model "$out/$form.model" --to ctranslate2 -o "$out/$form.back" $([[ $form == int8 ]] && echo --int8) >/dev/null
  sed 's/w/▁w/g' "$out/lines" | "$out/driver" "$out/$form.back" | sed 's/▁//g' >"$out/back"  # words are pieces of text there
  compare "$form, exported again" "$out/back" "$out/theirs"
done
ours "$out/int8.model" int8 "$out/theirs" >"$out/ours"
compare "int8, in integers here" "$out/ours" "$out/theirs"
