# PyTorch's time for the same update.
python3 "$kit/peer.py" --seconds "$seconds" $peer >"$work/peer.json" || exit
"$kit/result.py" peer "$work/peer.json" "$OUT/bench.jsonl"
