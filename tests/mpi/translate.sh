#!/bin/bash
# A model in shards translates what one worker translates: several windows of lines, empty ones among them; what cannot be is refused.
#   translate.sh STARLING MPIRUN [OPTIONS OF MPIRUN]
set -euo pipefail
starling=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for ((i = 0; i < 300; ++i)); do echo "a$((i % 7)) b$((i % 5)) c$((i % 3)) d$((i % 11))"; done > a
sed 's/a/x/; s/b/y/' a > b
"$starling" train --data.source a --data.target b --vocab.size 60 --model.preset transformer-tiny --model.width 32 \
  --model.feed-forward 64 --train.output run --train.batch-tokens 400 --train.max-steps 30 --train.learning-rate 0.003 --train.warmup 10 \
  --train.precision f32 --train.threads 1 > train.log 2>&1 || { cat train.log; exit 1; }
{ head -20 a; echo; head -100 a | tail -30; echo; } > in
"$starling" translate --model run --precision f32 --threads 1 --batch-size 2 --quiet < in > one
for ranks in 2 4; do
  "$@" -n $ranks "$starling" translate --model run --precision f32 --threads 1 --batch-size 2 --quiet --parallel.tensor $ranks < in > shards
  cmp one shards
done
[ "$(wc -l < one)" = 52 ]
refused() {
  local expected=$1
  shift
  if "$@" > refused.log 2>&1; then echo "not refused: $*"; exit 1; fi
  grep -qF -- "$expected" refused.log || { cat refused.log; exit 1; }
}
refused "start it with mpirun -n 4" "$@" -n 2 "$starling" translate --model run --parallel.tensor 4 --input in
refused "8-bit products are not supported with shards" \
  "$@" -n 2 "$starling" translate --model run --parallel.tensor 2 --precision int8 --input in
refused "does not divide model.heads" "$@" -n 3 "$starling" translate --model run --parallel.tensor 3 --input in
echo "shards translate as one worker does"
