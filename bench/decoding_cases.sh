#!/usr/bin/env bash
# What decoding takes in cases that differ from batches of sentences like each other: target tokens/s of each, and that number times the
# beam, divided by the same of the first case. Lines of 1 to 16 sentences mixed; single lines; beams up to 12; n-best lists of 50; two
# models together. All rounds in turn; medians. Then lines of a thousand tokens with translations of 800, in batches of 1 and of 8, by an
# untrained transformer-small, since a model that learnt from sentences ends such translations early.
# Usage: bench/decoding_cases.sh STARLING MODEL LINES [ROUNDS, default 3] [PRECISIONS, default "f32 int8"]
set -euo pipefail
starling=$(realpath "$1") model=$(realpath "$2") lines=$(realpath "$3") rounds=${4:-3} precisions=${5:-f32 int8}
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT

head -n 640 "$lines" >"$out/alike"
awk 'BEGIN { split("1 1 1 1 1 1 2 16", n) }
  { text = text (text == "" ? "" : " ") $0; if (++have == n[i % 8 + 1]) { print text; text = ""; have = 0; ++i } }' "$lines" >"$out/unequal"
awk '{ text = text (text == "" ? "" : " ") $0; if (++have == 60 && ++long <= 8) { print text; text = ""; have = 0 } }' "$lines" >"$out/long"
head -n 100 "$lines" >"$out/few"

speed() { sed -n 's/.*[ (]\([0-9,]*\) \(target \)*tokens\/s.*/\1/p' | tr -d , | tail -n 1; }
median() { printf '%s\n' "$@" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
# name | text | beam | options
cases=("alike, beam 4|alike|4|" "alike, beam 1|alike|1|" "alike, beam 8|alike|8|" "alike, beam 12|alike|12|"
  "alike, n-best 50|few|50|--n-best 50" "unequal, beam 4|unequal|4|"
  "one at a time, beam 4|few|4|--batch-size 1" "two models, beam 4|alike|4|twice")
declare -A results
for ((round = 0; round < rounds; ++round)); do
  for precision in $precisions; do
    for case in "${cases[@]}"; do
      IFS='|' read -r name text beam options <<<"$case"
      models=(--model "$model"); [[ $options == twice ]] && models+=(--model "$model") && options=
      # shellcheck disable=SC2086  # options are words
      took=$("$starling" translate "${models[@]}" --precision "$precision" --beam "$beam" $options <"$out/$text" 2>&1 >/dev/null | speed)
      results[$precision|$name]+=" $took"
    done
  done
done
printf '%-6s %-28s %14s %22s\n' type case "target tokens/s" "times beam, to the first"
for precision in $precisions; do
  base=
  for case in "${cases[@]}"; do
    IFS='|' read -r name text beam options <<<"$case"
    # shellcheck disable=SC2086
    value=$(median ${results[$precision|$name]})
    base=${base:-$(awk "BEGIN { print $value * $beam }")}
    printf '%-6s %-28s %14.0f %22.2f\n' "$precision" "$name" "$value" "$(awk "BEGIN { print $value * $beam / $base }")"
  done
done
for batch in 1 8; do
  echo "a thousand tokens, batches of $batch, beam 4:"
  "$starling" bench translate --preset transformer-small --precision "${precisions// /,}" --output-length 800 --beam 4 --batch-size $batch \
    --input "$out/long" | tail -n $(($(wc -w <<<"$precisions") + 1))
done
