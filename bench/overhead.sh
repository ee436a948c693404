#!/usr/bin/env bash
# What watching over a run costs: a snapshot of the guard, a comparison of replicas by hash, a checkpoint beside training. Runs report the
# time of each update, and updates with and without are compared within one run, so that a machine whose speed wanders disturbs both alike.
# Prints the cost of one, its standard error, and what that is of the training's time at the default distance. Nothing else should run.
# Usage: bench/overhead.sh STARLING [MODEL, default transformer-base] [UPDATES, default 200] [TARGET TOKENS of an update, default 1000]
set -euo pipefail
starling=$(realpath "${1:?usage: bench/overhead.sh STARLING [MODEL] [UPDATES] [TARGET TOKENS]}")
model=${2:-transformer-base} updates=${3:-200} tokens=${4:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$starling" demo-corpus --output corpus >/dev/null
common=(--data.source corpus/train.en --data.target corpus/train.de --vocab.size 8000 --model.preset "$model" --train.seed 3
  --train.batch-tokens "$tokens" --train.max-steps "$updates" --log.every 1 --log.progress never --train.output run)

run() {  # name, ranks, distance, updates after it that it may slow down, default distance, keys
  local name=$1 ranks=$2 distance=$3 after=$4 default=$5 command=("$starling")
  shift 5
  (($ranks == 1)) || command=("$starling" launch -n "$ranks" --)
  rm -rf run
  "${command[@]}" train "${common[@]}" --guard.mode off --strategy.check-every 0 --checkpoint.every 1000000 "$@" >log 2>&1 ||
    { cat log; exit 1; }
  python3 - "$name" "$ranks" "$distance" "$after" "$default" <<'P'
import json, statistics, sys
name, ranks, distance, after, default = sys.argv[1], *map(int, sys.argv[2:])
events = [json.loads(line) for line in open("run/events.jsonl")]
took = {e["step"]: e["seconds"] / e["target_tokens"] for e in events if e["type"] == "report"}
tokens = statistics.mean(e["target_tokens"] for e in events if e["type"] == "report")
waited = [e["waited_seconds"] for e in events if e["type"] == "checkpoint"]
last = max(took)
# Each one is held against the updates around it.
costs = []
for at in range(2 * distance, last - distance, distance):
    affected = [took[s] for s in range(at, at + after + 1)]
    others = [took[s] for s in range(at - distance // 2, at + distance // 2) if not at <= s <= at + after]
    costs.append(tokens * sum(x - statistics.median(others) for x in affected))
if len(costs) < 2:
    sys.exit(f"overhead.sh: {last} updates are too few for {name}; give {5 * distance} or more")
step = tokens * statistics.median(took[s] for s in took if s > 10)
cost, error = statistics.mean(costs), statistics.stdev(costs) / len(costs) ** 0.5
beside = len(waited) > 2  # each run saves one in the end
if beside:
    cost += statistics.mean(waited[1:-1])
print(f"{name:26} {ranks} rank(s): {1e3 * cost:7.1f} ms (+- {1e3 * error:.1f}), an update {1e3 * step:.0f} ms; every {default} updates: "
      f"{100 * cost / (default * step):.3f} %" + (f"; training waited {1e3 * waited[0]:.0f} ms for the first and "
      f"{1e3 * max(waited[1:-1]):.0f} ms at most for the others" if beside else ""))
P
}
run "nothing (noise)" 1 10 1 100
run "snapshot of the guard" 1 10 1 100 --guard.mode act --guard.snapshot-every 10
run "comparison by hash" 2 10 1 1000 --strategy.check-every 10
run "checkpoint beside training" 1 20 8 1000 --checkpoint.every 20 --checkpoint.keep 1
