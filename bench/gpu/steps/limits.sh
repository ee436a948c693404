# What the card can do at best.
"$starling" bench limits --device "$DEVICE" --format json >"$work/limits.json" || exit
"$kit/result.py" limits "$work/limits.json" "$OUT/bench.jsonl"
