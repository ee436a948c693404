#!/usr/bin/env bash
# Two ranks of one core each, over links of chosen rates between network namespaces on this machine: tokens/s of the dense exchange with and
# without overlap and of compressed gradients, over one rank by itself, measured in turn; and what the simulator says of the same, given the
# rates of computing and the link as measured at r = 0.7. r is the time of a dense f32 ring over the time one worker computes for a step.
# Averagings of parameters (sparse-local, cser) are not within the measured steps: they add r / average-interval to a step.
# Needs root and a quiet machine with two cores; 6 minutes.
# Usage: bench/scaling/sparse_links.sh STARLING [PRESET]      (default: transformer-small)
set -euo pipefail
cd "$(dirname "$0")/../.."
starling=$(realpath "$1") preset=${2:-transformer-small}
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT

value() { sed -n "s/^ *\"$2\": \([-0-9.e+]*\),*$/\1/p" "$1" | head -n 1; }
sent_mib() { sed -n '/"bytes_sent"/{n;s/[ ,]//gp}' "$1" | awk '{ printf "%.2f", $1 / 1048576 }'; }
calc() { awk "BEGIN { printf \"%.${2:-4}f\", $1 }"; }

common=(bench distributed --preset "$preset" --threads 1 --batches 2 --seconds 6 --format json)
dense=(--strategy.name all-reduce)
dropping=(--strategy.name gradient-dropping --strategy.compression.keep-warmup 0)
partial=(--strategy.name sparse-local --strategy.synchronous-steps 0)

mpirun --allow-run-as-root -n 2 --bind-to core "$starling" "${common[@]}" >"$out/loopback.json"
alone=$(value "$out/loopback.json" alone_ms) gradient=$(value "$out/loopback.json" gradient_mib)
echo "$preset: $(value "$out/loopback.json" parameters) parameters, one rank a core, 4,000 target tokens a rank and step, $(calc "$alone" 1) ms alone;" \
  "on the loopback two ranks have $(calc "2 * $alone / $(value "$out/loopback.json" overlapped_ms)" 2)x the tokens/s of one"
echo
echo "tokens/s of two ranks over one:   measured                                   simulated"
echo "   r  link Mbit/s   blocking  overlapped  dropping  partial     blocking  overlapped  dropping  partial   MiB a step: dense  dropping"

measure() {  # r
  rate=$(calc "$gradient * 1048576 * 8 / ($1 * $alone / 1000) / 1e6 / 0.95" 0)
  echo "$rate" >"$out/rate-$1"
  for arm in dense dropping partial; do
    local -n keys=$arm
    tools/network.sh mpirun 2 --rate "${rate}mbit" --core-per-host -- "$starling" "${common[@]}" "${keys[@]}" \
      --write-cluster "$out/cluster-$arm-$1.yml" >"$out/$arm-$1.json"
  done
}
speedup() { calc "2 * $(value "$1" alone_ms) / $(value "$1" "$2")" 2; }

measure 0.7
bandwidth=$(value "$out/dense-0.7.json" bandwidth_gbit_s)
for r in 0.3 0.7 1.5 3; do
  [[ $r == 0.7 ]] || measure $r
  for arm in dense dropping partial; do
    declare -n keys=$arm
    "$starling" "${common[@]}" "${keys[@]}" --steps 2 --cluster "$out/cluster-dense-0.7.yml" --cluster.timing-only true --workers 2 \
      --cluster.bandwidth-gbit-s "$(calc "$bandwidth * $(cat "$out/rate-$r") / $(cat "$out/rate-0.7")" 6)" >"$out/simulated-$arm.json"
  done
  printf '%4s %12s %10s %11s %9s %8s %12s %11s %9s %8s %19s %9s\n' $r "$(cat "$out/rate-$r")" \
    "$(speedup "$out/dense-$r.json" blocking_ms)" "$(speedup "$out/dense-$r.json" overlapped_ms)" \
    "$(speedup "$out/dropping-$r.json" overlapped_ms)" "$(speedup "$out/partial-$r.json" overlapped_ms)" \
    "$(speedup "$out/simulated-dense.json" blocking_ms)" "$(speedup "$out/simulated-dense.json" overlapped_ms)" \
    "$(speedup "$out/simulated-dropping.json" overlapped_ms)" "$(speedup "$out/simulated-partial.json" overlapped_ms)" \
    "$(sent_mib "$out/dense-$r.json")" "$(sent_mib "$out/dropping-$r.json")"
done
