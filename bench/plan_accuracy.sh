#!/usr/bin/env bash
# How well the simulator, and so `starling plan`, predicts steps on this machine: thirteen layouts of two models on two ranks of one thread.
# Each layout is measured over Open MPI and simulated with the rates that were measured just before and just after it, since a machine may
# change its speed within minutes: where the two differ by more than a seventh, or where other programs or the host of a virtual machine
# took processors away, the layout is measured again, up to three times, and said so. A row has the medians over the rounds, and how many of
# its times lay within the interval predicted for them (without a record of this host).
# Usage: [RANKS=4] [QUOTA=140] [RATE="100mbit 1gbit"] bench/plan_accuracy.sh STARLING [ROUNDS [NAME]]
# About ten minutes a round, on two cores with nothing else to do.
# NAME: only layouts whose model or name has it. RANKS: as many as that, which then share the cores; stages are divided among two of them,
# and the others are replicas. QUOTA: the percent of a core that all ranks get together, as in a container (a control group; needs root).
# RATE: in place of the layouts, two replicas and their strategies over links of these rates between network namespaces (tools/network.sh;
# needs root), blocking and overlapped.
set -euo pipefail
starling=$(realpath "${1:?usage: bench/plan_accuracy.sh STARLING [ROUNDS [NAME]]}")
cd "$(dirname "$0")/.."
rounds=${2:-3} only=${3:-}
out=$(mktemp -d); export XDG_STATE_HOME=$out
leave() {
  rm -rf "$out"
  [[ -z ${group:-} ]] || { echo $$ >"$group/../cgroup.procs"; rmdir "$group"; }
}
trap leave EXIT
if [[ -n ${QUOTA:-} ]]; then
  # Versions 1 and 2 of control groups. In periods of 10 ms, which steps do not notice.
  if [[ -d /sys/fs/cgroup/cpu ]]; then
    group=/sys/fs/cgroup/cpu/starling-$$
    mkdir "$group"; echo 10000 >"$group/cpu.cfs_period_us"; echo $((QUOTA * 100)) >"$group/cpu.cfs_quota_us"
  else
    group=/sys/fs/cgroup/starling-$$
    mkdir "$group"; echo "$((QUOTA * 100)) 10000" >"$group/cpu.max"
  fi
  echo $$ >"$group/cgroup.procs"
fi
value() { sed -n "s/^ *\"$2\": \([-0-9.e+]*\),*$/\1/p" "$1" | head -n 1; }
ranks() {
  if [[ -n ${rate:-} ]]; then
    tools/network.sh mpirun 2 --rate "$rate" --core-per-host -- "$starling" "$@" 2>"$out/stderr" || { cat "$out/stderr" >&2; exit 1; }
    return
  fi
  mpirun --allow-run-as-root --oversubscribe --bind-to none -n "${RANKS:-2}" "$starling" "$@" 2>"$out/stderr" ||
    { cat "$out/stderr" >&2; exit 1; }
}
top="--model.attention-place top --model.readout context"
average="--parallel.pipeline 1 --strategy.name model-average --strategy.periodic.interval 4"
pieces="--parallel.pipeline 2 --parallel.micro-batches 4 --parallel.time-pieces 4"
layouts=(  # model, name, batch tokens of a worker, options
  "transformer-small|2 replicas, all-reduce|1000|--parallel.pipeline 1"
  "transformer-small|2 replicas, sharded optimizer|1000|--parallel.pipeline 1 --strategy.sharded-optimizer true"
  "transformer-small|2 replicas, averaged every 4 updates|1000|$average"
  "transformer-small|2 replicas, largest 1 % of gradients|1000|--parallel.pipeline 1 --strategy.name gradient-dropping"
  "transformer-small|2 stages, 4 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 4"
  "transformer-small|2 stages, 16 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 16"
  "gnmt-small|2 replicas, all-reduce|1000|--parallel.pipeline 1"
  "gnmt-small|2 stages, 8 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 8"
  "gnmt-small|2 stages, 2 micro-batches|2000|--parallel.pipeline 2 --parallel.micro-batches 2"
  "gnmt-small|2 stages, 2 micro-batches in 4 pieces of time|2000|--parallel.pipeline 2 --parallel.micro-batches 2 --parallel.time-pieces 4"
  "gnmt-small|attention at the top: 2 replicas|1000|$top --parallel.pipeline 1"
  "gnmt-small|attention at the top: 2 stages in 4 pieces of time|2000|$top $pieces"
  "gnmt-small|attention at the top: hybrid of 2 stages|2000|$top $pieces --parallel.hybrid true"
)
if [[ -n ${RATE:-} ]]; then
  layouts=()
  for each in $RATE; do
    for overlap in false true; do
      ways="$([[ $overlap == true ]] && echo overlapped || echo blocking)|1000|--parallel.pipeline 1 --strategy.overlap $overlap"
      layouts+=("transformer-small|$each: all-reduce, $ways"
                "transformer-small|$each: sharded optimizer, $ways --strategy.sharded-optimizer true"
                "transformer-small|$each: largest 1 % of gradients, $ways --strategy.name gradient-dropping")
    done
  done
fi
calibrate() { ranks "${common[@]}" --batch-tokens 1000 --batches 4 --steps 8 --write-cluster "$1" >/dev/null; }
# Whether the machine was left alone: both predictions agree, and no other program disturbed the measurement.
undisturbed() {
  ! grep -q '"disturbance"' "$out/measured.json" &&
    awk -v a="$(value "$out/before.json" step_ms)" -v b="$(value "$out/after.json" step_ms)" \
      'BEGIN { exit !(a < 1.15 * b && b < 1.15 * a) }'
}
for ((round = 1; round <= rounds; ++round)); do
  calibrated=
  for layout in "${layouts[@]}"; do
    IFS='|' read -r model name tokens options <<<"$layout"
    [[ "$model $name" == *"$only"* ]] || continue
    common=(bench distributed --preset "$model" --precision f32 --threads 1)
    [[ -z ${RATE:-} ]] || rate=${name%%:*}
    # shellcheck disable=SC2206
    step=("${common[@]}" --batch-tokens "$tokens" --steps 16 --format json $options)
    for attempt in 1 2 3; do
      if [[ "$model ${rate:-}" == "$calibrated" ]]; then
        mv "$out/after.yml" "$out/before.yml"
      else
        calibrate "$out/before.yml"
        calibrated="$model ${rate:-}"
      fi
      ranks "${step[@]}" >"$out/measured.json"
      calibrate "$out/after.yml"
      for side in before after; do "$starling" "${step[@]}" --cluster "$out/$side.yml" >"$out/$side.json"; done
      if undisturbed; then break; fi
      what="$(value "$out/before.json" step_ms) ms predicted before, $(value "$out/after.json" step_ms) after "
      what+=$(grep -o '"disturbance.*"' "$out/measured.json" || true)
      echo "$model $name: attempt $attempt was disturbed: $what" | tee -a "$out/disturbed" >&2
    done
    row="$model|$name|$(value "$out/measured.json" step_ms)|$(value "$out/measured.json" bubble)"
    for side in before after; do
      for figure in step_ms bubble step_ms_low step_ms_high; do row+="|$(value "$out/$side.json" $figure)"; done
    done
    echo "$row" | tee -a "$out/rows" >&2
  done
done
# In the order of the layouts; the prediction is the mean of the two.
awk -F'|' '
  function median(key, n,  i, j, x, a) {
    for (i = 1; i <= n; ++i) {
      x = of[key, i]
      for (j = i; j > 1 && a[j - 1] > x; --j) a[j] = a[j - 1]
      a[j] = x
    }
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
  }
  {
    k = $1 FS $2
    if (!(k in rounds)) order[++rows] = k
    n = ++rounds[k]
    s = ($5 + $9) / 2
    hit = $3 >= ($7 + $11) / 2 && $3 <= ($8 + $12) / 2; hits[k] += hit; all_hits += hit
    of[k " m", n] = $3; of[k " s", n] = s; of[k " e", n] = 100 * (s / $3 - 1); of[k " mb", n] = 100 * $4; of[k " sb", n] = 50 * ($6 + $10)
  }
  END {
    printf "%-18s %-55s %11s %12s %8s %16s %7s\n", "model", "layout", "measured ms", "simulated ms", "error", "bubble (sim.)", "within"
    for (i = 1; i <= rows; ++i) {
      k = order[i]; n = rounds[k]; split(k, part, FS); e = median(k " e", n)
      printf "%-18s %-55s %11.1f %12.1f %+7.1f%% %6.1f %% (%4.1f) %3d/%d\n", part[1], part[2], median(k " m", n), median(k " s", n), e,
             median(k " mb", n), median(k " sb", n), hits[k], n
      of["all", i] = e < 0 ? -e : e; too_slow += e > 0
      if (of["all", i] > worst) worst = of["all", i]
    }
    printf "absolute error: median %.1f %%, worst %.1f %%; %d of %d predicted too slow; %d of %d times within their interval\n",
           median("all", rows), worst, too_slow, rows, all_hits, NR
  }' "$out/rows"
[[ ! -e $out/disturbed ]] || echo "$(wc -l <"$out/disturbed") attempts were disturbed"
