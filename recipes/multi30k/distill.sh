#!/usr/bin/env bash
# Trains a model on Multi30k's references and on a finished model's own translations of the training text (sequence-level knowledge
# distillation, Kim and Rush 2016), and prints GLEU and BLEU of both.
# Usage: recipes/multi30k/distill.sh TEACHER_RUN CONFIG STUDENT_RUN [starling train options]
#   e.g. distill.sh run-multi30k recipes/gnmt/config.yml run-gnmt-distilled; the translations stay beside TEACHER_RUN and are used again.
# Data and program: find.sh.
set -euo pipefail
. "$(dirname "$0")/find.sh"
usage="usage: distill.sh TEACHER_RUN CONFIG STUDENT_RUN [starling train options]"
teacher=${1:?$usage} config=${2:?$usage} student=${3:?$usage}
shift 3

translated=$teacher-train.translated
if [[ ! -f $translated ]]; then
  "$starling" translate --model "$teacher" --input "$data/train.en.gz" --output "$translated.part" --beam 4
  mv "$translated.part" "$translated"
fi
"$starling" train -c "$config" --train.output "$student" --data.train.0.source "$data/train.en.gz" --data.train.0.target "$data/train.de.gz" \
  --data.train.1.source "$data/train.en.gz" --data.train.1.target "$translated" --valid.source "$data/valid.en" --valid.target "$data/valid.de" "$@"
gleu_and_bleu "$teacher" "$teacher"
gleu_and_bleu "$student" "$student"
