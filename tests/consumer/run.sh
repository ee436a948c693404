#!/usr/bin/env bash
# Installs a build into a directory of its own, builds the programs beside this file against it by CMake and by pkg-config, and translates
# with them. Their output must be that of the program.
# Usage: tests/consumer/run.sh BUILD MODEL SOURCE
set -euo pipefail
build=$(realpath "$1") model=$(realpath "$2") source=$(realpath "$3")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >/dev/null
"$prefix/bin/starling" translate --quiet -m "$model" <"$source" >"$work/expected"
cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 && cmake --build "$work/build" >>"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }

compare() { cmp "$work/expected" "$work/$1" || { echo "$1 translates otherwise than the program"; exit 1; }; }
"$work/build/translate_cpp" "$model" <"$source" >"$work/translate.cpp"; compare translate.cpp
while IFS= read -r line; do "$work/build/translate_c" "$model" "$line"; done < <(head -n 3 "$source") >"$work/translate.c"
head -n 3 "$work/expected" | cmp - "$work/translate.c" || { echo "translate.c translates otherwise than the program"; exit 1; }
if "$work/build/translate_c" "$work/nowhere" x 2>"$work/error"; then echo "a missing model was no error"; exit 1; fi
grep -q nowhere "$work/error" || { echo "the error does not name the model:"; cat "$work/error"; exit 1; }
if command -v pkg-config >/dev/null; then
  config=$(find "$prefix" -name starling.pc -printf '%h')
  # shellcheck disable=SC2046
  cc "$here/translate.c" -o "$work/by_pkg_config" $(PKG_CONFIG_PATH=$config pkg-config --cflags --libs starling)
  "$work/by_pkg_config" "$model" "$(head -n 1 "$source")" | cmp - <(head -n 1 "$work/expected")
fi
module=$(find "$prefix" -path '*/starling/__init__.py' -printf '%h')
if [[ -n $module ]]; then
  PYTHONPATH=$(dirname "$module") python3 "$here/translate.py" "$model" <"$source" >"$work/translate.py"; compare translate.py
fi
echo "programs that use an installation translate as the program does"
