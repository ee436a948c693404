#!/usr/bin/env bash
# Two builds of starling side by side: the ratio of their speeds in training and translation, in rounds that alternate.
# Usage: bench/before_after.sh BEFORE AFTER TEXT [ROUNDS, default 5] [SECONDS of each measurement, default 6]
# TEXT: some source sentences to translate, one a line. The machine should have nothing else to do; a round takes about 10 measurements
# with their start-up. What else the machine does only ever slows down, so the fastest of the rounds are compared first; the last column
# says what a ratio is worth: its range over the rounds.
set -euo pipefail
before=$1 after=$2 text=$3 rounds=${4:-5} seconds=${5:-6}
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# The number of a key in JSON, the first there is.
number() { grep -m1 "\"$1\":" | sed 's/.*: *//; s/,$//'; }
train() { "$1" bench train --preset "$2" --batch-tokens "$3" --seconds "$seconds" --format json | number target_tokens_per_second; }
translate() { "$1" bench translate --preset "$2" --input "$text" --beam 4 --format json | number tokens_per_second; }

benchmarks=("train transformer-small 2000" "train transformer-base 2000" "train gnmt-4 400" "translate transformer-base" "translate gnmt-small")

for ((round = 1; round <= rounds; ++round)); do
  for what in "${benchmarks[@]}"; do
    first=$before second=$after
    if ((round % 2 == 0)); then first=$after second=$before; fi
    a=$(${what%% *} "$first" ${what#* })  # split into words: preset and tokens of a batch
    b=$(${what%% *} "$second" ${what#* })
    if ((round % 2 == 0)); then read -r a b <<< "$b $a"; fi
    echo "$what: $a $b" | tee -a "$results" >&2
  done
done

echo "benchmark                         before      after   after/before: of the fastest, median (least to most) of $rounds rounds"
for what in "${benchmarks[@]}"; do
  sed -n "s/^$what: //p" "$results" | awk '{ print $2 / $1, $1, $2 }' | sort -n | awk -v name="$what" '
    { ratio[NR] = $1; if ($2 > a) a = $2; if ($3 > b) b = $3 }
    END { m = int((NR + 1) / 2); printf "%-29s %10.0f %10.0f   %.3f, %.3f (%.3f to %.3f)\n", name, a, b, b / a, ratio[m], ratio[1], ratio[NR] }'
done
