#!/usr/bin/env bash
# Training in Marian and here, in turn: the same Transformer (transformer-small: 3 + 3 layers of width 256, pre-norm, dropout 0.1, label
# smoothing, Adam, 8,000 pieces, all embeddings tied), batches of 4,000 target tokens of sentences with a mean length of 28, on the
# processor. Marian computes in f32, by the BLAS that it was built with: once with as many workers as threads, once with one worker and
# threads in its products. Prints target tokens/s of each round, and the ratio of the medians for Marian's better way.
# Usage: MARIAN=PROGRAM bench/peers/marian.sh STARLING [ROUNDS, default 3] [THREADS, default 2]
set -euo pipefail
starling=$(realpath "$1") rounds=${2:-3} threads=${3:-2}
marian=$(realpath "${MARIAN:?the program marian, of version 1.12}")
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
updates=24

# Lengths from 8 to 47, of words that are pieces.
awk -v sources="$out/source" -v targets="$out/target" -v pieces="$out/vocabulary.yml" 'BEGIN {
  srand(7)
  for (line = 0; line < 12000; ++line)
    for (side = 0; side < 2; ++side) {
      if (side == 0) n = 8 + int(40 * rand())
      text = "w" int(7998 * rand())
      for (i = 1; i < n; ++i) text = text " w" int(7998 * rand())
      print text > (side ? targets : sources)
    }
  print "</s>: 0\n<unk>: 1" > pieces
  for (i = 0; i < 7998; ++i) print "w" i ": " (i + 2) > pieces
}'

median() { printf '%s\n' "$@" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
# Words a second of the updates after the first eight. Marian counts target words, with the end of a sentence as one.
theirs() {  # workers, threads of each
  OMP_NUM_THREADS=$2 OPENBLAS_NUM_THREADS=$2 "$marian" train --type transformer --train-sets "$out/source" "$out/target" \
    --vocabs "$out/vocabulary.yml" "$out/vocabulary.yml" --model "$out/model.npz" --overwrite --no-restore-corpus --cpu-threads "$1" \
    --dim-emb 256 --transformer-dim-ffn 1024 --transformer-heads 4 --enc-depth 3 --dec-depth 3 --tied-embeddings-all \
    --transformer-preprocess n --transformer-postprocess da --transformer-postprocess-emb d --transformer-postprocess-top n \
    --transformer-dropout 0.1 --transformer-dropout-attention 0.1 --transformer-dropout-ffn 0.1 --label-smoothing 0.1 \
    --optimizer adam --learn-rate 0.0003 --mini-batch 1000 --mini-batch-words 4000 --maxi-batch 100 --max-length 100 --sync-sgd \
    --workspace 2000 --disp-freq 4u --after-batches $updates --shuffle none --seed 1 >"$out/marian.log" 2>&1 ||
    { tail -n 5 "$out/marian.log" >&2; exit 1; }
  rm -f "$out"/model.npz*
  # shellcheck disable=SC2046  # numbers
  median $(sed -n 's/.* \([0-9.]*\) words\/s.*/\1/p' "$out/marian.log" | tail -n +3)
}
ours() {
  "$starling" bench train --preset transformer-small --vocabulary 8000 --batch-tokens 4000 --mean-length 28 --threads "$threads" \
    --precision "$1" --seconds 8 --format json | sed -n 's/.*"target_tokens_per_second": *\([0-9.]*\).*/\1/p'
}

workers=() products=() bf16=() f32=()
for ((round = 1; round <= rounds; ++round)); do
  workers+=("$(theirs "$threads" 1)") products+=("$(theirs 1 "$threads")") bf16+=("$(ours auto)") f32+=("$(ours f32)")
  echo "round $round: Marian ${workers[-1]} ($threads workers), ${products[-1]} (one worker); Starling ${bf16[-1]}, in f32 ${f32[-1]}"
done
best=$(printf '%s\n' "$(median "${workers[@]}")" "$(median "${products[@]}")" | sort -n | tail -n 1)
awk -v m="$best" -v b="$(median "${bf16[@]}")" -v f="$(median "${f32[@]}")" \
  'BEGIN { printf "Starling over Marian: %.2f, in f32 %.2f (medians)\n", b / m, f / m }'
