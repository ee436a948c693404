#!/usr/bin/env bash
# One rank ends early, by exit, by a signal or by an exception, or is stopped while the others wait for it as long as it works, or serve
# somebody else as well: they must end too, soon, and the run must not count as a success. One that waits while others leave must go on.
# Usage: failing.sh TEST_PROGRAM MPIRUN [ARGUMENT...]
set -u
program=$1
shift
for how in exit kill throw stop lost late; do
  start=$SECONDS
  output=$(timeout 50 "$@" -n 3 "$program" "--end=$how" 2>&1)
  status=$?
  printf '%s: status %d after %d s\n%s\n\n' "$how" "$status" "$((SECONDS - start))" "$output"
  if [[ $status -eq 0 || $status -eq 124 ]]; then
    echo "FAILED: the status of a run that lost a rank ($how) is $status"
    exit 1
  fi
  if [[ -z $output ]]; then
    echo "FAILED: nothing was said"
    exit 1
  fi
  if [[ $how == throw && $output != *"rank 1 on "*": corpus.de:17: this line is a test"* ]]; then
    echo "FAILED: the error's text is missing"
    exit 1
  fi
  if [[ $how =~ stop|lost|late && $output != *"rank 1 on "*" has not been heard of for "* ]]; then
    echo "FAILED: the stopped rank is not named"
    exit 1
  fi
done
output=$(timeout 50 "$@" -n 6 "$program" --end=leave 2>&1)
status=$?
if [[ $status -ne 0 ]]; then
  printf 'FAILED: a rank was taken for lost when others had left (status %d)\n%s\n' "$status" "$output"
  exit 1
fi
