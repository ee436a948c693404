#!/usr/bin/env bash
# Planned against actual peak memory of short runs, each in a cgroup that is too small for the run without a plan: it leaves room for what
# the model itself takes and for four tenths of the activations of the fastest micro-batches. For each model: the run without a limit; in
# the cgroup with these micro-batches prescribed, which is to be killed; in the cgroup with the planned ones. Needs root, for the cgroups.
# Usage: bench/memory_plan.sh STARLING [MODEL ...]
set -euo pipefail
starling=$(realpath "${1:?usage: bench/memory_plan.sh STARLING [MODEL ...]}") here=$(realpath "$(dirname "$0")")
shift
models=("$@")
(($#)) || models=(transformer-small transformer-base transformer-big gnmt-small gnmt-4 gnmt)
[ "$(id -u)" = 0 ] || { echo "memory_plan.sh: cgroups can be made by root only" >&2; exit 77; }
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/starling-plan-$$ key=memory.max
  echo +memory >/sys/fs/cgroup/cgroup.subtree_control
else
  group=/sys/fs/cgroup/memory/starling-plan-$$ key=memory.limit_in_bytes
fi
work=$(mktemp -d)
mkdir "$group"
trap 'rmdir "$group"; rm -rf "$work"' EXIT
cd "$work"
"$starling" demo-corpus --output corpus >/dev/null
head -50 corpus/valid.en >valid.en
head -50 corpus/valid.de >valid.de

train() {  # output, other keys; within the cgroup if $limit is set
  local output=$1
  shift
  ( if [ -n "$limit" ]; then
      echo $((limit << 20)) >"$group/$key"
      echo $BASHPID >"$group/cgroup.procs"
    fi
    exec "$starling" train --data.source corpus/train.en --data.target corpus/train.de --model.preset "$model" --vocab.size 3000 \
      --train.batch-tokens 4096 --train.max-steps 3 --checkpoint.every 2 --log.progress never --train.output "$output" \
      --valid.source valid.en --valid.target valid.de --valid.every 3 --valid.beam 1 "$@" >"$output.log" 2>&1 )
}
figures() { python3 "$here/planned_memory.py" "$1/events.jsonl"; }  # of a run
printf '%-18s %9s %9s %7s   %9s %-13s %9s %9s %7s %7s\n' model planned actual "" limit "unplanned run" planned actual "" tokens
for model in "${models[@]}"; do
  rm -rf free forced fits
  limit=
  train free || { tail -5 free.log; exit 1; }
  read -r planned actual _ least < <(figures free)
  limit=$least status=0
  { train forced --train.micro-batch-tokens 4096 || status=$?; } 2>/dev/null  # what bash says of the killed process
  ((status == 137)) || { echo "$model: the unplanned run was not killed, but ended with $status" >&2; exit 1; }
  train fits || { tail -5 fits.log; exit 1; }
  read -r planned_in actual_in tokens _ < <(figures fits)
  printf '%-18s %9d %9d %6.1f%%   %9d %-13s %9d %9d %6.1f%% %7d\n' "$model" "$planned" "$actual" \
    "$(awk "BEGIN { print 100 * ($planned / $actual - 1) }")" "$limit" "exit $status" "$planned_in" "$actual_in" \
    "$(awk "BEGIN { print 100 * ($planned_in / $actual_in - 1) }")" "$tokens"
done
echo "MiB; exit 137: killed for memory; tokens: target tokens of the planned micro-batches within the limit"
