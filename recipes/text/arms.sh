# shellcheck shell=bash
# Sourced by the scripts beside it: trains small models on texts that differ and compares them on Multi30k's test2016.
# Data and program: recipes/multi30k/find.sh.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../multi30k/find.sh"

train_and_score() {  # RUN [starling train options]: trains unless that is done, and keeps BLEU (13a) and chrF, beam 4, in RUN.scores
  local run=$1
  shift
  [[ -s $run.scores ]] && return
  "$starling" train -c "$here/config.yml" --train.output "$run" --valid.source "$data/valid.en" --valid.target "$data/valid.de" "$@" >&2
  "$starling" translate --quiet --model "$run" --input "$data/test2016.en" --output "$run.translated" --beam 4
  "$starling" evaluate --hypotheses "$run.translated" --references "$data/test2016.de" --metrics bleu,chrf --format json > "$run.scores"
}

table() {  # DIRECTORY ARM...: a row for each arm, BLEU and chrF of each seed and their means
  python3 - "$@" <<'END'
import json, pathlib, sys
directory, arms = pathlib.Path(sys.argv[1]), sys.argv[2:]
print("| trained on | BLEU, each seed | mean | chrF, each seed | mean |\n|---|---|---|---|---|")
for arm in arms:
    runs = [json.loads(file.read_text()) for file in sorted(directory.glob(f"{arm}-[0-9]*.scores"))]
    by_metric = [[score["score"] for run in runs for score in run if score["name"].lower().startswith(name)] for name in ("bleu", "chrf")]
    print(f"| {arm} | " + " | ".join(f"{', '.join(f'{x:.2f}' for x in xs)} | {sum(xs) / len(xs):.2f}" for xs in by_metric) + " |")
END
}
