#!/usr/bin/env bash
# First light: what the CUDA backend does on a real card, the most important checks first, within a budget of time, and a short table last.
# Usage: first_light.sh [STEP...]     in the folder of a kit (tools/portable.sh --cuda --tests); without steps all, in the order below
#   BUDGET=3600   seconds for all of it        OUT=first-light/TIME    the folder for results
#   DEVICE=cpu    tries the scripts without a card, with tiny models and emulated ops; SCALE=4 makes all limits four times as long
# The table is written anew after every step, and printed when the script ends, also when it is killed.
set -u
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DEVICE=${DEVICE:-cuda} BUDGET=${BUDGET:-3600} OUT=${OUT:-$PWD/first-light/$(date +%m%d-%H%M%S)}
began=$SECONDS work=${WORK:-/tmp/first-light}
mkdir -p "$OUT" "$work"
: >"$OUT/all.log"
: >"$OUT/bench.jsonl"
: >"$work/table"
real=1
[[ $DEVICE == cuda* ]] || real=0
starling=$kit/bin/starling
export kit work starling real DEVICE OUT
export GOMP_SPINCOUNT=1000 OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} CUDA_CACHE_PATH=$work/cache PYTHONUNBUFFERED=1
. "$kit/steps/sizes.sh"

left() { echo $((BUDGET - (SECONDS - began))); }
table() {
  echo "first light on ${card:-?}, $((SECONDS - began)) of $BUDGET s"
  cat "$work/table"
}
note() {  # STEP WORD SECONDS TEXT
  printf '%-10s %-7s %5s s  %s\n' "$1" "$2" "$3" "$4" >>"$work/table"
  table >"$OUT/summary.txt"
}
trap 'echo; table | tee "$OUT/summary.txt"' EXIT
running=  # the session of the step under way
end_step() {
  [[ -z $running ]] || pkill -KILL -s "$running" 2>/dev/null
  running=
}
trap 'end_step; exit 130' INT TERM
card=$DEVICE
((real)) && card=$(nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw --format=csv,noheader 2>/dev/null | head -1)

# Runs steps/STEP.sh for at most so many seconds, or what is left; the last line that it prints stands in the table.
step() {  # STEP SECONDS
  local name=$1 limit=$(($2 * ${SCALE:-1})) log=$work/$1.log from=$SECONDS status word=ok
  [[ -z $chosen || " $chosen " == *" $name "* ]] || return 0
  if (($(left) < limit / 3 + 5)); then
    note "$name" "no time" 0 "needs up to $limit s"
    return 0
  fi
  ((limit > $(left) - 3)) && limit=$(($(left) - 3))
  echo "== $name (at $((SECONDS - began)) s, at most $limit s)"
  setsid timeout -k 5 "$limit" bash "$kit/steps/$name.sh" >"$log" 2>&1 &
  running=$!
  wait "$running"
  status=$?
  end_step  # what the step has left behind would disturb the next one
  {
    echo "== $name: exit $status, $((SECONDS - from)) s"
    tail -c 200000 "$log"
  } >>"$OUT/all.log"
  case $status in
    0) ;;
    124 | 137) word=timeout ;;
    *) word=FAILED ;;
  esac
  note "$name" "$word" $((SECONDS - from)) "$(tail -n 1 "$log" | cut -c1-230)"
  return $status
}
chosen="$*"

# The order of the table by minutes in README.md.
step machine 20
step probe 40
step memory 20
step ops 75
ops=$?
((ops == 1)) && step memcheck 70  # at once where results are wrong
step train20 45
step bits 60
step resumed 60
step models 60
step limits 20
step big 75
step kernels 70
step occupancy 80
step products 90
step peer 60
step compiled 120
step translate 120
step multi30k 110
((ops == 1)) || step memcheck 70
step racecheck 70
step exchange 60
step base 45
step gnmt 45
step large 40
exit 0
