#!/usr/bin/env bash
# The speed of training while another process takes half of one core: rounds without and with it alternate, and the medians are compared.
# The other process is busy for 5 of every 10 ms, on the machine's last core. Nothing else should run.
# Usage: bench/busy_machine.sh STARLING [MODEL, default transformer-small] [ROUNDS, default 5] [SECONDS of a round, default 8]
set -euo pipefail
starling=$(realpath "${1:?usage: bench/busy_machine.sh STARLING [MODEL] [ROUNDS] [SECONDS]}")
model=${2:-transformer-small} rounds=${3:-5} seconds=${4:-8}
other=
rows=$(mktemp)
trap '[ -z "$other" ] || kill "$other"; rm -f "$rows"' EXIT
speed() { "$starling" bench train --preset "$model" --seconds "$seconds" | grep -oE '[0-9.]+ target tokens/s' | head -1 | cut -d' ' -f1; }
for ((round = 1; round <= rounds; ++round)); do
  alone=$(speed)
  python3 - <<'P' &
import os, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
while True:
    end = time.monotonic() + 0.005
    while time.monotonic() < end:
        pass
    time.sleep(0.005)
P
  other=$!
  beside=$(speed)
  kill "$other"
  wait "$other" 2>/dev/null || true
  other=
  echo "$alone $beside" >>"$rows"
done
python3 - "$rows" <<'P'
import statistics, sys
rows = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
ratios = sorted(b / a for a, b in rows)
for a, b in rows:
    print(f"alone {a:.0f}, beside it {b:.0f} target tokens/s: {100 * b / a:.0f} %")
print(f"median {100 * statistics.median(ratios):.0f} % of the speed alone")
P
