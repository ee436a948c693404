#!/usr/bin/env bash
# Likely mistakes, planted one at a time in a copy of the sources: do the tests find each? Prints a line for each; ends with 1 if one is
# not found, or could not be planted. The suites are lists in planted_bugs/.
# Usage: bench/planted_bugs.sh cuda | faults [NAME ...]   (half a minute to two minutes each)
#        bench/planted_bugs.sh cuda | faults --dry-run     whether each can still be planted; at once, and nothing is built
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:?name a suite: cuda or faults}
shift
copy=$(mktemp -d)
source "bench/planted_bugs/$suite.sh"
trap 'rm -rf "$copy"' EXIT
parse() { IFS='|' read -r name file expression <<<"${1//SCHEME_NONE |/SCHEME_NONE \\x7c}" && expression=${expression//\\x7c/|}; }
if [[ ${1:-} == --dry-run ]]; then
  status=0
  for bug in "${bugs[@]}"; do
    parse "$bug"
    if ! sed "$expression" "$file" >"$copy/planted" || cmp -s "$copy/planted" "$file"; then
      echo "$suite: '$name' cannot be planted in $file any more"
      status=1
    fi
  done
  exit $status
fi
git ls-files -z | xargs -0 cp --parents -t "$copy"
cmake -S "$copy" -B "$copy/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON --log-level=ERROR >/dev/null
build() { cmake --build "$copy/build" --parallel "$(nproc)" --target "$target" 2>&1; }
output=$(build) || { tail -20 <<<"$output" >&2; exit 1; }
output=$(tests) || { tail -20 <<<"$output" >&2; echo "the tests fail without a planted mistake" >&2; exit 1; }
status=0
for bug in "${bugs[@]}"; do
  parse "$bug"
  [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
  sed -i "$expression" "$copy/$file"
  if cmp -s "$file" "$copy/$file"; then
    echo "NOT PLANTED  $name"
    status=1
  elif ! output=$(build); then
    echo "found by the compiler  $name"
  else
    if output=$(tests); then
      echo "NOT FOUND  $name"
      status=1
    else
      found=$(sed -n \
        -e 's/^  \(start [0-9]*: .*\)/\1/p' \
        -e 's/^\(without faults: .*\)/\1/p' \
        -e 's/^\[  FAILED  \] \([A-Za-z0-9_.\/]*\).*/\1/p' <<<"$output" | sed -n 1p)
      echo "found by ${found:-the program, which ended}  ($name)"
    fi
  fi
  cp "$file" "$copy/$file"
done
exit $status
