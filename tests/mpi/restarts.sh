#!/bin/bash
# A rank that is killed at random: launch starts the run again, and it ends as one that nobody disturbed, bit for bit; afterwards no process
# and no temporary file is left.
#   restarts.sh STARLING [ROUNDS]
set -euo pipefail
starling=$(realpath "$1") rounds=${2:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for ((i = 0; i < 300; ++i)); do echo "a$((i % 7)) b$((i % 5)) c$((i % 3)) d$((i % 11))"; done > a
sed 's/a/x/; s/b/y/' a > b
train=(train --data.source a --data.target b --vocab.size 60 --model.preset transformer-tiny --model.width 32 --model.feed-forward 64
  --train.batch-tokens 400 --train.max-steps 2000 --train.learning-rate 0.003 --train.warmup 10 --train.precision f32 --train.threads 1
  --checkpoint.every 50 --train.seed 7 --log.progress never)
launch=("$starling" launch -n 2 --bind none --mpirun-args --oversubscribe)
"${launch[@]}" -- "${train[@]}" --train.output whole > whole.log 2>&1 || { cat whole.log; exit 1; }
same() { cmp "whole/checkpoints/step-00002000/$2" "$1/checkpoints/step-00002000/$2"; }
for ((round = 1; round <= rounds; ++round)); do
  run=run-$round
  "${launch[@]}" --restarts 3 --restart-pause 0.1s -- "${train[@]}" --train.output "$run" > "$run.log" 2>&1 &
  pid=$!
  for ((i = 0; i < 600; ++i)); do
    compgen -G "$run/checkpoints/step-*" > /dev/null && break
    sleep 0.05
  done
  sleep "0.$((RANDOM % 10))"
  pids=($(pgrep -f -- "train --data.source a .*--train.output $run" | while read -r rank; do
    [[ $rank != "$pid" && $(readlink "/proc/$rank/exe") == "$starling" && $(cat "/proc/$rank/comm") == starling ]] && echo "$rank"
  done || true))
  [[ ${#pids[@]} -gt 0 ]] || { echo "the run was over before a rank could be killed"; cat "$run.log"; exit 1; }
  victim=${pids[RANDOM % ${#pids[@]}]}
  kill -9 "$victim"
  wait $pid || { echo "launch ended with status $?"; cat "$run.log"; exit 1; }
  grep -q "restart 1 of 3" "$run.log" || { echo "it was not started again"; cat "$run.log"; exit 1; }
  for file in model.safetensors rank-0.safetensors; do same "$run" $file; done
  if pgrep -f -- "--train.output $run" > left; then echo "processes are left: $(cat left)"; exit 1; fi
  [[ -z $(find "$run" -name '.tmp-*' -o -name '.old-*') ]] || { find "$run" -name '.*'; exit 1; }
done
echo "$rounds killed runs ended as the undisturbed one"
