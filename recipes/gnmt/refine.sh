#!/usr/bin/env bash
# Refines a model of recipes/gnmt/run.sh by the expected GLEU of its own translations, three seeds, and prints GLEU and BLEU before and after.
# It begins at the run's last checkpoint, where the bound of the states is that of the configuration; the best one may be from before that.
# Usage: recipes/gnmt/refine.sh [RUN_OR_MODEL_DIRECTORY] [starling train options, e.g. --train.max-steps 200]
# Data and program: ../multi30k/find.sh.
set -euo pipefail
. "$(dirname "$0")/../multi30k/find.sh"
run=${1:-run-gnmt}
shift || true

start=$(ls -d "$run"/checkpoints/step-* 2>/dev/null | tail -n 1 || true)
start=${start:-$run}

gleu_and_bleu "$start" "$run-refined-0"
for seed in 1 2 3; do
  "$starling" train -c "$root/recipes/gnmt/config.yml" --train.output "$run-refined-$seed" --train.seed $seed \
    --train.initial-model "$start" --train.objective mixed --model.dropout 0 --train.clip-start 1 \
    --train.optimizer sgd --train.sgd-after 0 --train.sgd-halve-every 0 --train.schedule constant --train.warmup 0 \
    --train.learning-rate 0.1 --train.clip-norm 5 --train.ema 0 --train.batch-tokens 500 --train.max-steps 60 \
    "${files[@]}" \
    --valid.every 20 --valid.metrics gleu,bleu,cross-entropy --log.every 20 "$@"
  gleu_and_bleu "$run-refined-$seed" "$run-refined-$seed"
done
