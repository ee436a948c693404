#!/usr/bin/env bash
# Runs the tests of a gtest program in several processes at a time. The tests of a process that failed are run once more, each in a process
# of its own: one that faults the card takes all after it along. Usage: each.sh PROGRAM FILTER [PROCESSES]
# Prints "N passed, N failed, N skipped of N: names of failures"; what failed says why on standard error.
program=$1 filter=$2 processes=${3:-8} seconds=${EACH_SECONDS:-60}
dir=$(mktemp -d)
: >"$dir/results"

count() { grep -c "^$1" "$dir/results"; }
say() {
  local passed failed skipped all names=
  passed=$(count P) failed=$(count F) skipped=$(count S) all=$(wc -l <"$dir/names")
  ((failed)) && names=": $(sed -n 's/^F //p' "$dir/results" | head -12 | paste -sd ' ')"
  echo "$passed passed, $failed failed, $skipped skipped of $all$names"
  ((failed == 0 && passed + skipped == all && all > 0))
}
trap 'say; rm -rf "$dir"; exit 124' TERM INT

"$program" --gtest_list_tests --gtest_filter="$filter" | sed 's/  *#.*//' |
  awk '/^[^ ]/ { suite = $1 } /^  / { print suite $1 }' >"$dir/names"
for ((i = 0; i < processes; ++i)); do  # gtest gives every test in turn to the next shard
  {
    GTEST_TOTAL_SHARDS=$processes GTEST_SHARD_INDEX=$i timeout -k 2 $((2 * seconds)) "$program" --gtest_filter="$filter" --gtest_brief=1 \
      >"$dir/shard$i" 2>&1
    echo $? >"$dir/status$i"
  } &
done
wait
for ((i = 0; i < processes; ++i)); do
  awk -v i=$i -v n="$processes" '(NR - 1) % n == i' "$dir/names" >"$dir/of$i"
  if [[ $(cat "$dir/status$i") == 0 ]]; then
    skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$dir/shard$i" | tail -1)
    awk -v s="${skipped:-0}" '{ print (NR <= s ? "S " : "P ") $0 }' "$dir/of$i" >>"$dir/results"
  else
    cat "$dir/of$i" >>"$dir/again"
  fi
done

alone() {  # PROGRAM TEST FOLDER SECONDS
  local out status
  out=$(mktemp -p "$3")
  timeout -k 2 "$4" "$1" --gtest_filter="$2" --gtest_brief=1 >"$out" 2>&1
  status=$?
  if [[ $status != 0 ]]; then
    echo "F $2($status)"
    { echo "--- $2: exit $status" && head -c 1500 "$out" && echo; } >&2
  elif grep -q SKIPPED "$out"; then
    echo "S $2"
  else
    echo "P $2"
  fi
  rm -f "$out"
}
export -f alone
if [[ -s $dir/again ]]; then
  xargs -a "$dir/again" -d '\n' -P "$processes" -I{} bash -c 'alone "$@"' _ "$program" {} "$dir" "$seconds" >>"$dir/results" &
  wait $!
fi
say
status=$?
rm -rf "$dir"
exit $status
