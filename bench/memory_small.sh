#!/usr/bin/env bash
# Planned against actual peak memory of twelve small runs that validate, search, keep an average and several checkpoints: the parts that
# weigh most where a model is small. Prints both in MiB; ends with 1 if one is more than a tenth from its plan.
# Usage: bench/memory_small.sh STARLING
set -euo pipefail
starling=$(realpath "${1:?usage: bench/memory_small.sh STARLING}") here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$starling" demo-corpus --output corpus >/dev/null
head -100 corpus/valid.en >valid.en
head -100 corpus/valid.de >valid.de
worst=0
printf '%-78s %8s %8s %7s\n' run planned actual ""
while read -r options; do
  rm -rf run
  # shellcheck disable=SC2086  # several options a line
  "$starling" train --data.source corpus/train.en --data.target corpus/train.de --vocab.size 2000 --train.batch-tokens 2048 \
    --train.max-steps 8 --checkpoint.every 4 --log.progress never --train.output run --valid.source valid.en --valid.target valid.de \
    --valid.every 4 $options >log 2>&1 || { tail -5 log; exit 1; }
  read -r planned actual _ < <(python3 "$here/planned_memory.py" run/events.jsonl)
  off=$(awk "BEGIN { print 100 * ($planned / $actual - 1) }")
  printf '%-78s %8.0f %8.0f %6.1f%%\n' "$options" "$planned" "$actual" "$off"
  worst=$(awk "BEGIN { o = sqrt(($off) * ($off)); print (o > $worst) ? o : $worst }")
done <<'RUNS'
--model.preset transformer-tiny
--model.preset transformer-tiny --valid.beam 1
--model.preset transformer-tiny --valid.beam 12
--model.preset transformer-tiny --train.ema 0.999
--model.preset transformer-tiny --train.batch-tokens 8192
--model.preset transformer-tiny --vocab.size 4000
--model.preset transformer-tiny --train.threads 1
--model.preset transformer-small
--model.preset transformer-small --train.ema 0.999 --valid.beam 6
--model.preset transformer-small --valid.metrics bleu,chrf,cross-entropy
--model.preset gnmt-small
--model.preset gnmt-small --train.ema 0.999
RUNS
awk "BEGIN { printf \"farthest: %.1f %% (10 %% are allowed)\\n\", $worst; exit ($worst > 10) }"
