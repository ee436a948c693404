# One update of the big Transformer in the middle of the first round: each kernel timed alone, in order.
((real)) || { echo 'needs a card' && exit; }
# A round has 8 batches, so that 2,500 launches reach the third.
timeout 60 ncu --clock-control none --cache-control none --target-processes all --launch-skip 2500 --launch-count 1300 --kill yes --csv \
  --print-units base --metrics gpu__time_duration.sum,dram__bytes.sum \
  "$starling" bench train $big --device "$DEVICE" --seconds 0.1 >"$work/ncu.csv" || tail -n 3 "$work/ncu.csv"
python3 "$kit/kernels.py" "$work/ncu.csv" | tee "$OUT/kernels.txt"
status=${PIPESTATUS[0]}
sed -n '2,7p' "$OUT/kernels.txt" | awk '{ printf "%s %s ms; ", $1, $3 } END { print "" }'
exit "$status"
