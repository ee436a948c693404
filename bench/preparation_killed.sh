#!/usr/bin/env bash
# Kills the preparation of training data in the middle, continues it, and compares the store with one that was made in one go.
# Usage: bench/preparation_killed.sh BENCH_DATA DIRECTORY [PAIRS]     (built with -DSTARLING_BENCH=ON)
# The directory gets 300 bytes a pair; text and vocabulary that are there already are used.
set -euo pipefail
bench_data=$1 directory=$2 pairs=${3:-1000000}
shards_before_the_kill=3
mkdir -p "$directory"

sums() { (cd "$directory/data" && sha256sum train.*); }

"$bench_data" --output "$directory" --pairs "$pairs" | tee "$directory/whole.txt"
sums > "$directory/whole.sha256"

rm -r "$directory/data"
"$bench_data" --output "$directory" --pairs "$pairs" > "$directory/killed.txt" &
child=$!
until [ "$(ls "$directory/data" 2> /dev/null | grep -vc '\.new$')" -ge "$shards_before_the_kill" ]; do
  kill -0 $child || { echo "it ended before it could be killed: ask for more pairs"; exit 1; }
  sleep 0.1
done
kill -KILL $child
wait $child 2> /dev/null || true
echo "killed with these files:" && ls "$directory/data"

"$bench_data" --output "$directory" --pairs "$pairs" | tee "$directory/continued.txt"
grep -q "tokens of [0-9]* pairs are there already" "$directory/continued.txt"
diff "$directory/whole.sha256" <(sums)
echo "the continued store is the same, byte by byte"
