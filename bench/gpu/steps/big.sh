# Updates of the big Transformer.
"$starling" bench train $big --device "$DEVICE" --seconds "$seconds" --format json >"$work/big.json" || exit
"$kit/result.py" train "$work/big.json" "$OUT/bench.jsonl" big
