# Updates of GNMT, the deep LSTM.
"$starling" bench train $gnmt --device "$DEVICE" --seconds "$seconds" --format json >"$work/gnmt.json" || exit
"$kit/result.py" train "$work/gnmt.json" "$OUT/bench.jsonl" gnmt
