#!/usr/bin/env bash
# Runs a command on a core that no other such command has at the moment; if there is none, anywhere. The simulator's ranks take turns, and
# to wake each of them on another core costs a third of the time of tests whose models are tiny.
# Usage: one_core.sh COMMAND [ARGUMENT ...]
cores=$(taskset -pc $$ 2>/dev/null | sed 's/.*: //' | tr ',' '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)
for core in $cores; do
  exec 9>"${TMPDIR:-/tmp}/starling-tests-$UID-core-$core.lock" || break
  if flock -n 9; then exec taskset -c "$core" "$@"; fi
done
exec "$@"
