#!/usr/bin/env bash
# Refines a trained model by the expected GLEU of its own translations (docs/guides/refinement.md), three seeds with Adam, and prints GLEU and
# BLEU before and after.
# Usage: recipes/multi30k/refine.sh RUN_DIRECTORY [starling train options, e.g. --train.max-steps 100]     from the run's best model
# Data and program: find.sh.
set -euo pipefail
. "$(dirname "$0")/find.sh"
run=${1:?usage: refine.sh RUN_DIRECTORY [starling train options]}
shift

gleu_and_bleu "$run" "$run-refined-0"
for seed in 1 2 3; do
  "$starling" train -c "$run/config.yml" --train.output "$run-refined-$seed" --train.seed $seed --train.initial-model "$run" \
    --train.objective mixed --model.dropout 0 --model.attention-dropout 0 --model.feed-forward-dropout 0 --train.learning-rate 1e-4 \
    --train.schedule constant --train.warmup 0 --train.ema 0 --train.loss-normalization sentences --train.clip-norm 5 --train.batch-tokens 1000 \
    --train.max-tokens 0 --train.max-steps 60 --valid.every 20 --valid.metrics gleu,bleu,cross-entropy --log.every 20 "$@" >"$run-refined-$seed.log"
  gleu_and_bleu "$run-refined-$seed" "$run-refined-$seed"
done
