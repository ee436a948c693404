# Translating with a beam of 4. All of one length, so that batches keep their rows.
"$starling" bench translate $translate --device "$DEVICE" --input "$kit/data/multi30k/test2016.en" --beam 4 --batch-size 64 \
  --output-length 28 --format json >"$work/translate.json" || exit
"$kit/result.py" translate "$work/translate.json" "$OUT/bench.jsonl"
