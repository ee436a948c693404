#!/usr/bin/env bash
# How well does confidence hold? Trains a small model on Multi30k unless RUN_DIRECTORY has one, calibrates it on the validation set, and
# measures on test2016 and, as a text of another kind, on the demo's corpus: calibration error and area under the curve, beside mean
# log-probabilities and the four features of bergamot-translator, by a program that shares nothing with ours (confidence.py; its words do
# not move, so about 5 % fewer are right, which is its error). Then for an 8-bit copy with the calibration that it came with.
# Usage: bench/confidence.sh [RUN_DIRECTORY] [MINUTES of training, 10]
# Data and program: recipes/multi30k/find.sh.
set -euo pipefail
. "$(dirname "$0")/../recipes/multi30k/find.sh"
run=${1:-run-confidence}
if [[ ! -d $run ]]; then
  "$starling" train -c "$root/recipes/multi30k/config.yml" --train.output "$run" "${files[@]}" --train.max-minutes "${2:-10}" \
    --train.warmup 300 --model.dropout 0.1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$starling" demo-corpus --output "$work/demo" --train 100 >/dev/null

echo "== calibrated on the validation set (each half judged by the other)"
"$starling" calibrate --model "$run" --source "$data/valid.en" --target "$data/valid.de" --precision f32 2>/dev/null

measure() {  # MODEL PRECISION NAME SOURCE TARGET
  "$starling" translate --quiet --model "$1" --precision "$2" --confidence --input "$4" --output "$work/$3.text"
  "$starling" translate --quiet --model "$1" --precision "$2" --target-pieces --word-scores pieces --input "$4" --output "$work/$3.pieces"
  cp "$5" "$work/$3.reference"
}
measure "$run" f32 valid "$data/valid.en" "$data/valid.de"
measure "$run" f32 test2016 "$data/test2016.en" "$data/test2016.de"
measure "$run" f32 demo "$work/demo/test.en" "$work/demo/test.de"
python3 "$root/bench/confidence.py" "$work" valid test2016 demo
for text in test2016:"$data/test2016.en":"$data/test2016.de" demo:"$work/demo/test.en":"$work/demo/test.de"; do
  IFS=: read -r name source target <<<"$text"
  echo "== $name, by calibrate --measure"
  "$starling" calibrate --measure --model "$run" --source "$source" --target "$target" --precision f32 2>/dev/null | tail -n 3
done
"$starling" quantize --model "$run" --output "$work/int8" --source "$data/valid.en" --target "$data/valid.de" --force >/dev/null 2>&1
echo "== test2016 in 8 bits, with the calibration of the floats"
"$starling" calibrate --measure --model "$work/int8" --source "$data/test2016.en" --target "$data/test2016.de" 2>/dev/null | tail -n 3
for options in "--sampling --seed 1" "--beam 1" "--beam 8"; do
  # shellcheck disable=SC2086  # several words
  "$starling" translate --quiet --model "$run" --precision f32 --confidence $options --input "$data/test2016.en" --output "$work/other.text"
  cp "$data/test2016.de" "$work/other.reference"
  echo "== test2016 with $options"
  python3 "$root/bench/confidence.py" "$work" other
done
