#!/usr/bin/env bash
# The demo: makes the built-in corpus, trains a small model on it, shows translations of unseen sentences and scores the test set.
# Usage: tools/demo.sh PATH-TO-STARLING   (from anywhere; results go to run-demo/ in the repository)
set -euo pipefail

starling=$(realpath "${1:?usage: tools/demo.sh PATH-TO-STARLING}")
cd "$(dirname "$0")/.."
run=$PWD/run-demo  # whole paths, so that the commands that are shown work from anywhere
corpus=$run/corpus
model=$run/model  # the run directory of training: translate takes its best checkpoint
recipe=recipes/demo.yml
shown=12  # sentences
began=$SECONDS

say() { printf '\n== %s\n' "$*"; }

# Prints source, translation and reference of the first sentences of the test set.
show_translations() {
  paste -d '\t' <(head -n "$shown" "$corpus/test.en") <(head -n "$shown" "$run/test.translated") <(head -n "$shown" "$corpus/test.de") |
    while IFS=$'\t' read -r source translation reference; do
      printf '\n  English      %s\n  translation  %s\n  reference    %s%s\n' "$source" "$translation" "$reference" \
        "$([[ $translation == "$reference" ]] && echo "   (the same)" || true)"
    done
}

# Says so when training ended at its time limit, before its last update, and how to complete it.
tell_unfinished() {
  local whole done seconds left
  whole=$(sed -n 's/^ *max-steps: *\([0-9]*\).*/\1/p' "$recipe")
  done=$(sed -n 's/.*"type":"stop".*"step":\([0-9]*\).*/\1/p' "$model/events.jsonl" | tail -n 1)
  seconds=$(sed -n 's/.*"type":"stop".*"seconds":\([0-9]*\).*/\1/p' "$model/events.jsonl" | tail -n 1)
  [[ $done && $seconds && $done -gt 0 && $done -lt $whole ]] || return 0
  left="$(((seconds * (whole - done) / done + 59) / 60)) minutes"
  [[ $left == "1 minutes" ]] && left="1 minute"
  cat <<TEXT

This machine is slow or busy: training reached its time limit after $done of $whole updates ($((100 * done / whole)) %), so
more of the translations below are wrong than need be. All $whole updates give about 98 BLEU;
the rest would take about $left here:
  (cd $(printf %q "$PWD") && $(printf %q "$starling") train $recipe --train.max-minutes 0)
TEXT
}

cat <<'TEXT'
Starling's demo. It trains a small Transformer from nothing on an artificial corpus: English-German sentences about times, dates,
prices, directions, the weather, orders in a cafe and everyday doings, made from templates by a program, with German word order,
cases and genders. The model sees 25,000 of them and is then tested on 1,000 others.
It shows that everything works on this machine. It is no measure of translating real text: see README.md for that.
TEXT

rm -rf "$run"
mkdir -p "$run"

say "1. The corpus"
"$starling" demo-corpus --output "$corpus"

say "2. Training (at most four minutes)"
"$starling" train -c "$recipe"
tell_unfinished

say "3. Translating sentences that were not in the training data"
"$starling" translate --model "$model" <"$corpus/test.en" >"$run/test.translated"
show_translations

say "4. Scores on the $(wc -l <"$corpus/test.en") test sentences"
"$starling" evaluate --hypotheses "$run/test.translated" --references "$corpus/test.de" --metrics bleu,chrf
same=$(paste -d '\n' "$run/test.translated" "$corpus/test.de" | awk 'NR % 2 { line = $0; next } line == $0 { n++ } END { print n + 0 }')
echo "$same of $(wc -l <"$corpus/test.de") translations are identical to the reference."

say "Done in $((SECONDS - began)) s. Try it yourself, from any directory:"
echo "  echo 'My sister does not want to buy the old house.' | $(printf %q "$starling") translate --model $(printf %q "$model")"
