#!/usr/bin/env bash
# CPU seconds and wall seconds of what continuous integration spends its time on: the program, the tests' programs and the tests, from
# nothing, without ccache. Compare CPU seconds: beside other work the wall tells little, and even they grow by a third.
# Usage: bench/build_time.sh [--build-only] [CMAKE_OPTION ...]
set -euo pipefail
cd "$(dirname "$0")/.."
suite=yes
[[ ${1:-} != --build-only ]] || { suite=no; shift; }
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
export CCACHE_DISABLE=1
TIMEFORMAT='%U s user, %S s system, %R s wall'
timed() { printf '%-8s ' "$1:"; { time "${@:2}" >"$build/log" 2>&1 || { tail -20 "$build/log"; exit 1; }; } 2>&1; }
generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
timed configure cmake --preset release -B "$build" -G "$generator" "$@"
timed starling cmake --build "$build" --parallel "$(nproc)" --target starling
timed tests cmake --build "$build" --parallel "$(nproc)"
[[ $suite == no ]] || timed suite tools/test.sh "$build" --label-exclude matrix
