#!/usr/bin/env bash
# Configurations of Mozilla's pipeline for Firefox's models, there and back: its teacher's and its student's are converted, a model of
# each is trained for a few updates, exported, and translates in Firefox's engine and here. Prints how many lines are equal, and how many
# are different from each other. The engine ends a translation at twice the length of its source. CONFIGS
# is pipeline/train/configs of Mozilla's repository "translations"; SOURCE and TARGET are parallel text. Smaller than there, so that it
# takes minutes: the vocabulary, the batch, the warm-up, and the teacher's dimensions. The links that guide the student's attention are
# made up.
# Usage: PACKAGE=DIRECTORY [UPDATES=20] bench/peers/mozilla.sh STARLING CONFIGS SOURCE TARGET
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
starling=$(realpath "$1") configs=$(realpath "$2") source=$(realpath "$3") target=$(realpath "$4") updates=${UPDATES:-20}
cd "${PACKAGE:?the folder where @browsermt/bergamot-translator is installed}"
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
paste <(head -20000 "$source" | tr '\t' ' ') <(head -20000 "$target" | tr '\t' ' ') > "$out/teacher.tsv"
sed 's/$/\t0-0/' "$out/teacher.tsv" > "$out/student.tsv"
head -200 "$source" > "$out/lines"
printf '%-8s %-5s %-5s %12s %10s\n' model type beam "equal lines" different
for model in teacher student; do
  files=(--from-marian "$configs/model/$model.yml") smaller=()
  case $model in
    teacher) smaller=(--model.encoder-layers 2 --model.decoder-layers 2 --model.width 128 --model.feed-forward 512 --model.heads 4) ;;
    student) files=(--from-marian "$configs/model/student.tiny.yml") ;;
  esac
  "$starling" train "${files[@]}" --from-marian "$configs/training/$model.train.yml" --data.tsv "$out/$model.tsv" \
    --train.output "$out/$model" --vocab.size 2001 --model.tied-embeddings all --train.batch-tokens 1000 --train.warmup 10 \
    --train.learning-rate 0.002 --train.max-steps "$updates" "${smaller[@]}" > "$out/$model.yml"
  "$starling" train "$out/$model.yml" > "$out/log" 2>&1 || { tail -3 "$out/log"; exit 1; }
  for type in f32 int8; do
    int8=() gemm=float32
    [[ $type == f32 ]] || int8=(--int8) gemm=int8shiftAll
    "$starling" export --to bergamot "${int8[@]}" -m "$out/$model" -o "$out/$model.$type" > /dev/null
    for beam in 1 4; do
      node "$here/bergamot.mjs" "$out/$model.$type/model.bin" "$out/$model.$type/vocab.spm" gemm-precision=$gemm skip-cost=false \
        beam-size=$beam normalize=0 max-length-factor=2 < "$out/lines" > "$out/theirs"
      "$starling" translate --model "$out/$model" --precision f32 --beam $beam --length-penalty 0 --max-length-factor 2 \
        --max-length-offset 0 --replace-ended=false --min-length 0 < "$out/lines" > "$out/ours" 2> /dev/null
      equal=$(paste -d '\n' "$out/ours" "$out/theirs" | awk 'NR % 2 { a = $0; next } { n += a == $0 } END { print n + 0 "/" NR / 2 }')
      printf '%-8s %-5s %-5s %12s %10s\n' $model $type $beam "$equal" "$(sort -u "$out/ours" | wc -l)"
    done
  done
done
