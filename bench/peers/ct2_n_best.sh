#!/usr/bin/env bash
# N-best lists of CTranslate2 and of Starling with the same model in f32: for each beam and length penalty, in how many sentences the best
# is the same, and whose list has the better sum of scores. Both lists are scored by one program, since CTranslate2's own scores are those
# of a distribution without the tokens that its options forbid (the end of sentence at the first token). LINES are tokens with spaces
# between them, as the model has them. Needs CTranslate2 as ctranslate2.sh does.
# Usage: CTRANSLATE2=DIRECTORY bench/peers/ct2_n_best.sh STARLING MODEL_DIRECTORY LINES
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
starling=$(realpath "$1") model=$(realpath "$2") lines=$(realpath "$3")
ct2=$(realpath "${CTRANSLATE2:?the directory of CTranslate2}")
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
g++ -std=c++20 -O2 -I"$ct2/include" -I"$ct2/build/include" "$here/ct2_n_best.cpp" -o "$out/driver" -L"$ct2/build" \
  -Wl,-rpath,"$ct2/build" -lctranslate2
"$starling" import "$model" -o "$out/model" >/dev/null
printf '%-6s %-8s %-9s %10s %12s %14s %12s\n' beam penalty patience sentences "same best" "better here" "better there"
for setting in "1 0 1" "4 0 1" "4 1 1" "4 0.6 1" "4 1 2" "8 0 1" "8 1 1"; do
  read -r beam penalty patience <<<"$setting"
  "$starling" translate --model "$out/model" --source-pieces --target-pieces --precision f32 --quiet --beam "$beam" --n-best "$beam" \
    --length-penalty "$penalty" --length-penalty-form power --patience "$patience" --allow-unknown <"$lines" |
    if ((beam == 1)); then awk '{ print NR - 1 " ||| " $0 " ||| ||| 0" }'; else cat; fi >"$out/ours"
  "$out/driver" "$model" "$beam" "$penalty" "$patience" <"$lines" >"$out/theirs"
  for list in ours theirs; do
    "$starling" score --model "$out/model" --pieces --source "$lines" --n-best "$out/$list" --n-best-feature logP \
      -o "$out/$list.scored" 2>/dev/null
    sed 's/^\([0-9]*\) ||| \(.*[^ ]\) *|||.* logP= \([-0-9.]*\).*/\1\t\2\t\3/; s/ |||[^\t]*//' "$out/$list.scored" >"$out/$list.table"
  done
  awk -F '\t' -v penalty="$penalty" -v head="$(printf '%-6s %-8s %-9s' "$beam" "$penalty" "$patience")" '
    { i = $1 + 0; score = $3 / (split($2, tokens, " ") + 1) ^ penalty; if (i > last) last = i }
    NR == FNR { ours[i] += score; if (!counts[i]++) best[i] = $2; next }
    { theirs[i] += score; if (!others[i]++) best_there[i] = $2 }
    END {
      for (i = 0; i <= last; ++i) {
        same += best[i] == best_there[i]
        if (counts[i] != others[i]) { here += counts[i] > others[i]; there += counts[i] < others[i] }
        else { here += ours[i] > theirs[i] + 1e-3; there += ours[i] < theirs[i] - 1e-3 }
      }
      printf "%s %10d %12d %14d %12d\n", head, last + 1, same, here, there
    }' "$out/ours.table" "$out/theirs.table"
done
