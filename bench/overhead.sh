#!/usr/bin/env bash
# The overhead of guard, snapshots, comparison of replicas and checkpoints: time per target token with each of them over the time without
# any, in rounds that alternate. Prints the median of the rounds, and their range. Nothing else should run.
# Usage: bench/overhead.sh STARLING [ROUNDS, default 3] [UPDATES, default 120]
set -euo pipefail
starling=$(realpath "${1:?usage: bench/overhead.sh STARLING [ROUNDS] [UPDATES]}") rounds=${2:-3} updates=${3:-120}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$starling" demo-corpus --output corpus >/dev/null
common=(--data.source corpus/train.en --data.target corpus/train.de --vocab.size 8000 --model.preset transformer-small
  --train.batch-tokens 1000 --train.max-steps "$updates" --log.every 1 --log.progress never --train.seed 3)
none=(--guard.mode off --strategy.check-every 0 --checkpoint.every 1000000)
declare -A more=(
  [none]="" [again]=""
  [guard]="--guard.mode warn"
  [snapshots]="--guard.mode act --guard.snapshot-every 20"
  [hashes]="--strategy.check-every 20"
  [checkpoints]="--checkpoint.every 40"
)
kinds=(none again guard snapshots checkpoints)
ranks=(none again hashes)  # replicas are compared only where there are several

run() {  # kind ranks
  local command=("$starling")
  (($2 == 1)) || command=("$starling" launch -n "$2" -- )
  rm -rf run
  # shellcheck disable=SC2086
  "${command[@]}" train "${common[@]}" "${none[@]}" ${more[$1]} --train.output run >log 2>&1 || { cat log; exit 1; }
  # A report's seconds have all that happens between updates but checkpoints, for which training waits in addition.
  python3 - "$1" "$2" >>results <<'P'
import json, sys
events = [json.loads(line) for line in open("run/events.jsonl")]
reports = [e for e in events if e["type"] == "report" and e["step"] > 10]
waited = sum(e["waited_seconds"] for e in events if e["type"] == "checkpoint" and e["step"] < reports[-1]["step"])
print(sys.argv[1], sys.argv[2], (sum(r["seconds"] for r in reports) + waited) / sum(r["target_tokens"] for r in reports))
P
}
for ((round = 1; round <= rounds; ++round)); do
  for kind in "${kinds[@]}"; do run "$kind" 1; done
  for kind in "${ranks[@]}"; do run "$kind" 2; done
done
python3 - <<'P'
import collections, statistics
times = collections.defaultdict(list)
for line in open("results"):
    kind, ranks, seconds = line.split()
    times[ranks, kind].append(float(seconds))
for (ranks, kind), values in times.items():
    if kind != "none":
        ratio = [a / b for a, b in zip(values, times[ranks, "none"])]
        percent = [f"{100 * (x - 1):+.1f}" for x in (statistics.median(ratio), min(ratio), max(ratio))]
        print(f"{ranks} rank(s), {kind:12} {percent[0]} % ({percent[1]} to {percent[2]})")
print("'again' repeats the run without any of them: its difference is noise")
P
