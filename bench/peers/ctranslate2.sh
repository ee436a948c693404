#!/usr/bin/env bash
# The same model in CTranslate2 and here: a Transformer of ours is exported, both translate the lines, in turn, in f32 and int8, with beams
# 1 and 4, in batches of 64 and line by line; then the directory is imported back. Prints tokens/s of each, their ratio, and how many lines
# are equal. Needs the sources of CTranslate2 in the folder CTRANSLATE2, built in its build/ (with Debian's oneDNN 2.6 without the fast path
# of its convolution, src/ops/conv1d_cpu.cc: -DWITH_MKL=OFF -DWITH_DNNL=ON -DOPENMP_RUNTIME=COMP -DBUILD_CLI=OFF), and two idle cores.
# Usage: CTRANSLATE2=DIRECTORY bench/peers/ctranslate2.sh STARLING MODEL LINES REFERENCES [ROUNDS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
starling=$(realpath "$1") model=$(realpath "$2") lines=$(realpath "$3") references=$(realpath "$4") rounds=${5:-3}
ct2=$(realpath "${CTRANSLATE2:?the directory of CTranslate2}")
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
g++ -std=c++20 -O2 -I"$ct2/include" -I"$ct2/build/include" "$here/ctranslate2.cpp" -o "$out/driver" -L"$ct2/build" -Wl,-rpath,"$ct2/build" \
  -lctranslate2 -lsentencepiece
"$starling" export --to ctranslate2 -m "$model" -o "$out/f32" >/dev/null
"$starling" export --to ctranslate2 --int8 -m "$model" -o "$out/int8" >/dev/null
"$starling" import "$out/f32" -o "$out/again" >/dev/null
"$starling" import "$out/int8" -o "$out/again-int8" >/dev/null
spm=$out/f32/sentencepiece.model
[[ -f $spm ]] || spm=$out/f32/source.spm,$out/f32/target.spm
speed() { sed -n 's/.*[ (]\([0-9,]*\) \(target \)*tokens\/s.*/\1/p' "$1" | tr -d , | tail -n 1; }
median() { printf '%s\n' "$@" | sort -n | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'; }
bleu() {
  "$starling" evaluate --hypotheses "$1" --references "$references" --metrics bleu 2>/dev/null | sed 's/^[^=]* = \([0-9.]*\) .*/\1/'
}
printf '%-5s %-5s %-6s %12s %12s %7s %12s %12s %12s\n' type beam batch "starling" "ctranslate2" ratio "equal lines" "BLEU here" "BLEU there"
for type in f32 int8; do
  again=$out/again; [[ $type == f32 ]] || again=$out/again-int8
  for beam in 1 4; do
    for batch in 64 1; do
      ours=() theirs=()
      for ((round = 0; round < rounds; ++round)); do
        "$starling" translate --model "$again" --precision $type --threads 2 --beam $beam --length-penalty 0 --batch-size $batch \
          --max-length-factor 0 --max-length-offset 256 --allow-unknown <"$lines" >"$out/ours.txt" 2>"$out/ours.log"
        "$out/driver" "$out/$type" "$spm" $type $beam $batch 2 0 <"$lines" >"$out/theirs.txt" 2>"$out/theirs.log"
        ours+=("$(speed "$out/ours.log")") theirs+=("$(speed "$out/theirs.log")")
      done
      equal=$(paste -d '\n' "$out/ours.txt" "$out/theirs.txt" | awk 'NR % 2 { a = $0; next } { n += a == $0 } END { print n "/" NR / 2 }')
      a=$(median "${ours[@]}") b=$(median "${theirs[@]}")
      printf '%-5s %-5s %-6s %12.0f %12.0f %7.2f %12s %12s %12s\n' $type $beam $batch "$a" "$b" "$(awk "BEGIN { print $a / $b }")" \
        "$equal" "$(bleu "$out/ours.txt")" "$(bleu "$out/theirs.txt")"
    done
  done
done
