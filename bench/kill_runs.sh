#!/usr/bin/env bash
# Simulated training runs that are killed once each and continued (tests/faults): in every layout each rank at the end of each update, and
# the whole run at each operation that changes the files of a checkpoint and of a best model, once where the machine goes on and once where
# its power fails. Prints the kills by layout, and those after which the run did not end with the bits of the one that was left alone.
# Ends with 1 if there are any. Build the tests first.
# Usage: bench/kill_runs.sh [TEST_FAULTS, default build/release/tests/test_faults] [LAYOUT, default all]...
set -euo pipefail
program=${1:-$(dirname "$0")/../build/release/tests/test_faults}
shift || true
processes=$(nproc)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export GOMP_SPINCOUNT=1000
pids=()
for ((p = 0; p < processes; ++p)); do
  "$program" --kills $p "$processes" "$@" >"$results/$p" &
  pids+=($!)
done
crashed=0
for pid in "${pids[@]}"; do
  status=0
  wait "$pid" || status=$?
  ((status <= 1)) || crashed=$status
done
((crashed == 0)) || { echo "$program ended with status $crashed" >&2; exit 1; }
grep -hvE ' s$' "$results"/* || true  # what was wrong
printf '%-28s %6s %6s %6s %6s\n' layout update write power failed
sed -nE 's/^(.{28}) +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+) +[0-9]+ s$/\1|\2|\3|\4|\5/p' "$results"/* | awk -F'|' '
  { if (!($1 in seen)) order[++layouts] = $1
    ++seen[$1]
    for (i = 2; i <= 5; ++i) { count[$1, i] += $i; all[i] += $i } }
  END {
    for (l = 1; l <= layouts; ++l) {
      name = order[l]
      printf "%s %6d %6d %6d %6d\n", name, count[name, 2], count[name, 3], count[name, 4], count[name, 5]
    }
    printf "%-28s %6d %6d %6d %6d\n", "together", all[2], all[3], all[4], all[5]
    exit all[5] > 0
  }'
