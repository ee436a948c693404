#!/usr/bin/env bash
# One rank ends early, by exit, by a signal or by an exception, or is stopped while the others wait for it as long as it works, or serve
# somebody else as well: they must end too, soon, and the run must not count as a success. One that waits while others leave must go on.
# The runs mostly wait for silence to last, so they go side by side.
# Usage: failing.sh TEST_PROGRAM MPIRUN [ARGUMENT...]
set -u
program=$1
shift
outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT

run() {  # how ranks
  local start=$SECONDS
  timeout 50 "${mpirun[@]}" -n "$2" "$program" "--end=$1" >"$outputs/$1.text" 2>&1
  echo "$? $((SECONDS - start))" >"$outputs/$1.status"
}
mpirun=("$@")
for how in exit kill throw stop lost late; do run $how 3 & done
run leave 6 &
wait

failed() { echo "FAILED: $*"; status=1; }
status=0
for how in exit kill throw stop lost late leave; do
  output=$(<"$outputs/$how.text")
  read -r code seconds <"$outputs/$how.status"
  printf '%s: status %d after %d s\n%s\n\n' "$how" "$code" "$seconds" "$output"
  if [[ $how == leave ]]; then
    [[ $code -eq 0 ]] || failed "a rank was taken for lost when others had left (status $code)"
    continue
  fi
  [[ $code -ne 0 && $code -ne 124 ]] || failed "the status of a run that lost a rank ($how) is $code"
  [[ -n $output ]] || failed "nothing was said ($how)"
  [[ $how != throw || $output == *"rank 1 on "*": corpus.de:17: this line is a test"* ]] || failed "the error's text is missing"
  [[ ! $how =~ stop|lost|late || $output == *"rank 1 on "*" has not been heard of for "* ]] || failed "the stopped rank is not named ($how)"
done
exit $status
