#!/usr/bin/env bash
# Word links of `starling align` beside fast_align's: how many, how many are the same, and the CPU seconds of each, one thread, in turns.
# Usage: bench/peers/fast_align.sh STARLING DIRECTORY_OF_FAST_ALIGN SOURCE TARGET (fast_align and atools are in the directory; the text may
# be packed; its ASCII punctuation is set apart for both)
set -euo pipefail
starling=$(realpath "$1") peer=$(realpath "$2") source=$3 target=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apart() { { zcat -f "$1" 2>/dev/null || cat "$1"; } | sed 's/[][!"#$%&'"'"'()*+,./:;<=>?@\\^_`{|}~-]/ & /g; s/  */ /g; s/^ //; s/ $//'; }
apart "$source" >"$work/a"
apart "$target" >"$work/b"
paste "$work/a" "$work/b" | sed 's/\t/ ||| /' >"$work/both"
export OMP_NUM_THREADS=1 TIMEFORMAT='%U'
ours() {
  "$starling" align --source "$work/a" --target "$work/b" --parts spaces --threads 1 --model diagonal --as-fast-align --quiet -o "$work/ours"
}
theirs() {
  "$peer/fast_align" -d -o -v -i "$work/both" >"$work/forward" 2>/dev/null
  "$peer/fast_align" -d -o -v -r -i "$work/both" >"$work/reverse" 2>/dev/null
  "$peer/atools" -i "$work/forward" -j "$work/reverse" -c grow-diag-final-and >"$work/theirs"
}
for round in 1 2 3; do
  rm -f "$work/ours"
  printf 'round %s: starling align %s s' $round "$({ time ours; } 2>&1)"
  printf ', fast_align and atools %s s (CPU, one thread)\n' "$({ time theirs; } 2>&1)"
done
python3 - "$work/ours" "$work/theirs" <<'P'
import sys
a, b = ([set(line.split()) for line in open(path)] for path in sys.argv[1:3])
same = sum(len(x & y) for x, y in zip(a, b))
print(f"{len(a)} and {len(b)} lines; {sum(map(len, a))} and {sum(map(len, b))} links, {same} the same; "
      f"{sum(x == y for x, y in zip(a, b))} lines with the same links")
P
