# The whole program twice: equal bits; and its first loss beside the processor's.
cd "$work" || exit
[[ -d corpus ]] || "$starling" demo-corpus --output corpus >/dev/null
run() {  # DIRECTORY DEVICE UPDATES
  rm -rf "$1"
  "$starling" train --data.source corpus/train.en --data.target corpus/train.de \
    --model.preset "$preset" --model.dropout 0.1 --model.attention-dropout 0.1 --train.batch-tokens 2000 --train.seed 1 \
    --train.max-steps "$3" --train.learning-rate 1e-3 --train.warmup 100 --checkpoint.every "$3" --checkpoint.keep 1 --log.every 5 \
    --train.output "$1" --device "$2" >"$1.log" 2>&1
}
loss() { grep -a -o 'step 5 .*loss [0-9.]*' "$1.log" | head -1 | grep -o '[0-9.]*$'; }
hash_of() { find "$1/checkpoints" -name '*.safetensors' | sort | xargs sha256sum | awk '{ print $1 }' | sha256sum; }
run a "$DEVICE" "$updates" || { cat a.log && exit 4; }
run b "$DEVICE" "$updates" &
second=$!
run cpu cpu 10
wait "$second" || { cat b.log && echo 'the second run has failed' && exit 4; }
tail -n 2 a.log b.log cpu.log
words="loss at update 5: $(loss a) here, $(loss cpu) on the processor"
if [[ $(hash_of a) == "$(hash_of b)" ]]; then
  echo "equal bits after $updates updates; $words"
else
  echo "BITS DIFFER after $updates updates; $words"
  exit 1
fi
