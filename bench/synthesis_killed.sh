#!/usr/bin/env bash
# Kills processes of `starling synthesize` that share the work, at random moments, and compares what comes out with an uninterrupted run.
# Usage: bench/synthesis_killed.sh STARLING MODEL TEXT [TIMES, default 10] [further options of synthesize]
set -euo pipefail
starling=${1:?usage: synthesis_killed.sh STARLING MODEL TEXT [TIMES] [options]} model=${2:?model} text=${3:?text} times=${4:-10}
shift $(($# < 4 ? $# : 4))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() {  # DIRECTORY OPTIONS: in the place of the shell that calls it
  exec "$starling" synthesize -m "$model" -i "$text" --threads 1 --precision f32 --quiet "${@:2}" -o "$work/$1"
}
milliseconds() { date +%s%3N; }

began=$(milliseconds)
(run whole "$@")
took=$(($(milliseconds) - began))
echo "one process: $took ms, $(zstd -dcq "$work/whole/text.tsv.zst" | wc -l) pairs"
killed=0
for ((i = 0; i < times; ++i)); do {
  run killed "$@" & first=$!
  run killed "$@" & second=$!
  sleep "$(awk -v seed="$i$RANDOM" -v most="$took" 'BEGIN { srand(seed); print rand() * most / 6000 }')"
  for process in $first $second; do
    # One of the two is killed each time, in turn, and the other one after a while.
    [[ $(cat "/proc/$process/comm" 2> /dev/null) == starling* ]] && kill -9 "$process" && killed=$((killed + 1))
    sleep 0.1
  done
  wait "$first" "$second" || true
} 2> /dev/null; done
run killed "$@" & second=$!
(run killed "$@")
wait "$second"
for file in text.tsv.zst scores.zst synthesis.json; do
  cmp <(zstd -dcqf "$work/whole/$file") <(zstd -dcqf "$work/killed/$file")
done
[[ $killed -gt 0 ]] || { echo "none was killed: the text is too short" >&2; exit 1; }
left=$(cd "$work" && ls -A | grep -vxE 'whole|killed' | paste -sd ' ')
echo "killed $killed times: the same text, scores and counts; left behind: ${left:-nothing}"
