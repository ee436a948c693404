#!/usr/bin/env bash
# Tokens/s of the program and of the Python module (and so of libstarling) with the same model and text, in turn, and that eight Python
# threads give the bytes of one.
# Usage: bench/library.sh BUILD MODEL SOURCE [ROUNDS]
set -euo pipefail
build=$(realpath "${1:?usage: bench/library.sh BUILD MODEL SOURCE [ROUNDS]}") model=$(realpath "$2") source=$(realpath "$3") rounds=${4:-5}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat >"$work/translate.py" <<'PYTHON'
import sys
import threading
import time

import starling

model, source, target, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
with open(source) as file:
    lines = file.read().splitlines()
translator = starling.Translator(model)
translator.translate(lines[:8])
begin = time.monotonic()
results = [None] * threads


def work(thread):
    results[thread] = translator.translate(lines[thread::threads])


workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
seconds = time.monotonic() - begin
translations = [results[i % threads][i // threads] for i in range(len(lines))]
tokens = sum(len(t.tokens) + 1 for t in translations)
with open(target, "w") as file:
    file.writelines(t.text + "\n" for t in translations)
print(f"{tokens / seconds:.0f}")
PYTHON
median() { sort -n | awk '{ a[NR] = $1 } END { printf "%.0f", NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2 }'; }
for ((round = 1; round <= rounds; ++round)); do
  "$build/starling" translate -m "$model" <"$source" 2>"$work/log" >"$work/program.txt"
  sed -n 's/.*: \([0-9]*\) tokens\/s.*/\1/p' "$work/log" >>"$work/program"
  for threads in 1 8; do
    PYTHONPATH=$build/python python3 "$work/translate.py" "$model" "$source" "$work/$threads.txt" $threads >>"$work/python$threads"
    cmp "$work/program.txt" "$work/$threads.txt"
  done
done
program=$(median <"$work/program")
echo "tokens/s, medians of $rounds rounds; equal texts in all of them"
echo "the program                  $program"
for threads in 1 8; do
  python=$(median <"$work/python$threads")
  awk -v p="$program" -v y="$python" -v t=$threads \
    'BEGIN { printf "Python, %d thread%s  %10d  %.2f of the program\n", t, t == 1 ? " " : "s", y, y / p }'
done
