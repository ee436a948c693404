#!/usr/bin/env bash
# How well the simulator, and so `starling plan`, predicts steps on this machine: thirteen layouts of two models on two ranks of one thread,
# each measured over Open MPI and simulated with the rates and the link that were measured just before it. Every round measures everything
# once, so a machine whose speed drifts is equally fast for both sides. Of each side the fastest round counts: other programs only ever add
# time.
# Usage: bench/plan_accuracy.sh STARLING [ROUNDS]          about three minutes a round; two cores with nothing else to do
set -euo pipefail
starling=$(realpath "${1:?usage: bench/plan_accuracy.sh STARLING [ROUNDS]}")
rounds=${2:-2}
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT
value() { sed -n "s/^ *\"$2\": \([-0-9.e+]*\),*$/\1/p" "$1" | head -n 1; }
ranks() { mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 "$starling" "$@" 2>"$out/stderr" || { cat "$out/stderr" >&2; exit 1; }; }
top="--model.attention-place top --model.readout context"
layouts=(  # model, name, batch tokens of a worker, options
  "transformer-small|2 replicas, all-reduce|1000|--parallel.pipeline 1"
  "transformer-small|2 replicas, sharded optimizer|1000|--parallel.pipeline 1 --strategy.sharded-optimizer true"
  "transformer-small|2 replicas, averaged every 4 updates|1000|--parallel.pipeline 1 --strategy.name model-average --strategy.periodic.interval 4"
  "transformer-small|2 replicas, largest 1 % of gradients|1000|--parallel.pipeline 1 --strategy.name gradient-dropping"
  "transformer-small|2 stages, 4 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 4"
  "transformer-small|2 stages, 16 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 16"
  "gnmt-small|2 replicas, all-reduce|1000|--parallel.pipeline 1"
  "gnmt-small|2 stages, 8 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 8"
  "gnmt-small|2 stages, 2 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 2"
  "gnmt-small|2 stages, 2 micro-batches in 4 pieces of time|2000|--parallel.pipeline 2 --parallel.micro-batches 2 --parallel.time-pieces 4"
  "gnmt-small|attention at the top: 2 replicas|1000|$top --parallel.pipeline 1"
  "gnmt-small|attention at the top: 2 stages in 4 pieces of time|2000|$top --parallel.pipeline 2 --parallel.micro-batches 4 --parallel.time-pieces 4"
  "gnmt-small|attention at the top: hybrid of 2 stages|2000|$top --parallel.pipeline 2 --parallel.micro-batches 4 --parallel.time-pieces 4 --parallel.hybrid true"
)
for ((round = 1; round <= rounds; ++round)); do
  calibrated=
  for layout in "${layouts[@]}"; do
    IFS='|' read -r model name tokens options <<<"$layout"
    common=(bench distributed --preset "$model" --precision f32 --threads 1)
    if [[ $model != "$calibrated" ]]; then
      ranks "${common[@]}" --batch-tokens 1000 --batches 4 --steps 8 --write-cluster "$out/cluster.yml" >/dev/null
      calibrated=$model
    fi
    # shellcheck disable=SC2206
    step=("${common[@]}" --batch-tokens "$tokens" --steps 8 --format json $options)
    ranks "${step[@]}" >"$out/measured.json"
    "$starling" "${step[@]}" --cluster "$out/cluster.yml" >"$out/simulated.json"
    echo "$model|$name|$(value "$out/measured.json" step_ms)|$(value "$out/simulated.json" step_ms)|$(value "$out/measured.json" bubble)|$(
      value "$out/simulated.json" bubble)" | tee -a "$out/rows" >&2
  done
done
# In the order of the layouts, then the median of the absolute errors.
awk -F'|' '
  !($1 FS $2 in m) { order[++rows] = $1 FS $2 }
  !($1 FS $2 in m) || $3 < m[$1 FS $2] { m[$1 FS $2] = $3; mb[$1 FS $2] = $5 }
  !($1 FS $2 in s) || $4 < s[$1 FS $2] { s[$1 FS $2] = $4; sb[$1 FS $2] = $6 }
  END {
    printf "%-18s %-46s %11s %12s %8s %16s\n", "model", "layout", "measured ms", "simulated ms", "error", "bubble (sim.)"
    for (i = 1; i <= rows; ++i) {
      k = order[i]; split(k, part, FS); error = 100 * (s[k] / m[k] - 1)
      printf "%-18s %-46s %11.1f %12.1f %+7.1f%% %6.1f %% (%4.1f)\n", part[1], part[2], m[k], s[k], error, 100 * mb[k], 100 * sb[k]
      a = error < 0 ? -error : error
      for (j = i; j > 1 && sorted[j - 1] > a; --j) sorted[j] = sorted[j - 1]
      sorted[j] = a
    }
    median = rows % 2 ? sorted[(rows + 1) / 2] : (sorted[rows / 2] + sorted[rows / 2 + 1]) / 2
    printf "absolute error: median %.1f %%, worst %.1f %%\n", median, sorted[rows]
  }' "$out/rows"
