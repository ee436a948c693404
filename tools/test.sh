#!/usr/bin/env bash
# Runs the tests of a build, then lists what was skipped, and why.
# Usage: tools/test.sh BUILD_DIRECTORY [CTEST_OPTION ...]
set -uo pipefail
build=$1
shift
status=0
ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel 2 "$@" </dev/null || status=$?
# A skipped test gives a line "FILE:LINE: Skipped", and its reason on the next.
skipped=$(grep -ha -A1 ': Skipped$' "$build/Testing/Temporary/LastTest.log" | grep -v -e '^--$' -e ': Skipped$' | sort | uniq -c)
[[ -z $skipped ]] || printf 'Skipped tests, by reason:\n%s\n' "$skipped"
exit $status
