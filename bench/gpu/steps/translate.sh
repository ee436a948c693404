# Translating with a beam of 4. All of one length, so that batches keep their rows; each also says what one sentence takes.
for sentences in $translate_batches; do
  "$starling" bench translate $translate --device "$DEVICE" --input "$kit/data/multi30k/test2016.en" --beam 4 --batch-size "$sentences" \
    --output-length 28 --format json >"$work/translate.json" || exit
  echo "$sentences at a time: $("$kit/result.py" translate "$work/translate.json" "$OUT/bench.jsonl" "translate-$sentences")"
done | tee "$work/translate.out"
[[ -s $work/translate.out ]] || exit 1
paste -sd '|' "$work/translate.out"
