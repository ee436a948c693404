# A run of some updates against one of half as many that is resumed: equal bits.
cd "$work" || exit
[[ -d corpus ]] || "$starling" demo-corpus --output corpus >/dev/null
half=$((resumed / 2))
run() {  # DIRECTORY UPDATES
  "$starling" train --data.source corpus/train.en --data.target corpus/train.de \
    --model.preset "$preset" --model.dropout 0.1 --model.attention-dropout 0.1 --train.batch-tokens 2000 --train.seed 1 \
    --train.max-steps "$2" --train.learning-rate 1e-3 --train.warmup 100 --checkpoint.every "$half" --checkpoint.keep 1 --log.every 5 \
    --train.output "$1" --device "$DEVICE" >>"$1.log" 2>&1 || { cat "$1.log" && echo "a run of $2 updates has failed" && exit 4; }
}
hash_of() { find "$1/checkpoints" -name '*.safetensors' | sort | xargs sha256sum | awk '{ print $1 }' | sha256sum; }
rm -rf whole halves whole.log halves.log
run whole "$resumed" &
whole=$!
run halves "$half"
run halves "$resumed"
wait "$whole" || exit 4
grep -a -q 'continuing after update' halves.log || { cat halves.log && echo 'the second half was not resumed' && exit 4; }
if [[ $(hash_of whole) == "$(hash_of halves)" ]]; then
  echo "equal bits: $resumed updates, and $half and $half resumed"
else
  echo "BITS DIFFER: $resumed updates, and $half and $half resumed"
  exit 1
fi
