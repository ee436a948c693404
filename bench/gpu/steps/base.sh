# Updates of the base Transformer.
"$starling" bench train $base --device "$DEVICE" --seconds "$seconds" --format json >"$work/base.json" || exit
"$kit/result.py" train "$work/base.json" "$OUT/bench.jsonl" base
