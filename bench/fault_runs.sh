#!/usr/bin/env bash
# Simulated training runs with injected faults, drawn from seeds (tests/faults): counts each fault, and prints the seeds whose run did not
# end as the undisturbed one. Ends with 1 if there are any. Build the tests first.
# Usage: bench/fault_runs.sh [SEEDS, default 10000] [FROM, default 0] [TEST_FAULTS, default build/release/tests/test_faults]
set -euo pipefail
seeds=${1:-10000} from=${2:-0} program=${3:-$(dirname "$0")/../build/release/tests/test_faults}
processes=$(nproc)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export GOMP_SPINCOUNT=1000
each=$(((seeds + processes - 1) / processes))
for ((p = 0; p < processes; ++p)); do
  first=$((p * each)) count=$((seeds - p * each < each ? seeds - p * each : each))
  ((count <= 0)) || "$program" --seeds $((from + first)) $count >"$results/$p" || true &
done
wait
grep -hvE '^ *[0-9]+ [a-z]|^[0-9]+ runs' "$results"/* || true  # what was wrong
sort -k2 "$results"/* | awk -v seeds="$seeds" '
  /^ *[0-9]+ [a-z]/ && !/runs of/ { n = $1; $1 = ""; count[$0] += n }
  / runs of / { runs += $1; starts += $7; updates += $10; failed += $(NF - 1); layouts = $4 }
  END {
    for (what in count) printf "%10d%s\n", count[what], what | "sort -k2"
    close("sort -k2")
    printf "%d runs of %d layouts in %d starts and %d updates: %d failed\n", runs, layouts, starts, updates, failed
    if (runs != seeds) printf "only %d of %d runs were made: a program has crashed\n", runs, seeds
    exit !(failed == 0 && runs == seeds)
  }'
