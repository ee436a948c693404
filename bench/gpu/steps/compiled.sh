# PyTorch's time for the same update, compiled.
((real)) || { echo 'needs a card' && exit; }
python3 "$kit/peer.py" --compile --seconds "$seconds" $peer >"$work/compiled.json" || exit
"$kit/result.py" peer "$work/compiled.json" "$OUT/bench.jsonl"
