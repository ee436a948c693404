#!/usr/bin/env bash
# Two ranks of one core each, over links of chosen rates between network namespaces on this machine: step times with and without overlap
# against the ideal, and what the simulator predicts, calibrated once (at r = 0.5). r is the time of a dense f32 ring over the time one worker
# computes for a step. Needs root and a quiet machine with two cores; 6 minutes for small, 15 for base.
# Usage: bench/scaling/links.sh STARLING [PRESET...]      (default: transformer-small transformer-base)
set -euo pipefail
cd "$(dirname "$0")/../.."
starling=$(realpath "$1"); shift
presets=("$@"); [[ ${#presets[@]} -gt 0 ]] || presets=(transformer-small transformer-base)
out=$(mktemp -d); trap 'rm -rf "$out"' EXIT

value() { sed -n "s/^ *\"$2\": \([-0-9.e+]*\),*$/\1/p" "$1" | head -n 1; }
calc() { awk "BEGIN { printf \"%.${2:-4}f\", $1 }"; }

for preset in "${presets[@]}"; do
  batches=2 seconds=10; [[ $preset == transformer-small ]] || seconds=20
  common=(bench distributed --preset "$preset" --threads 1 --batches $batches --seconds $seconds --format json)

  # One rank by itself and two on the loopback, in the same run.
  mpirun --allow-run-as-root -n 2 --bind-to core "$starling" "${common[@]}" >"$out/loopback.json"
  alone=$(value "$out/loopback.json" alone_ms) gradient=$(value "$out/loopback.json" gradient_mib)
  together=$(value "$out/loopback.json" overlapped_ms)
  p1=$(value "$out/loopback.json" product_gflops_alone) p2=$(value "$out/loopback.json" product_gflops_together)
  echo "== $preset: $(value "$out/loopback.json" parameters) parameters, $(nproc) cores, one rank a core, 4,000 target tokens a rank and step"
  echo "loopback: $(calc "$alone" 1) ms alone, $(calc "$together" 1) ms for two: $(calc "2 * $alone / $together" 3)x the tokens/s of one;" \
    "two processes of matrix products: $(calc "2 * $p2 / $p1" 3)x; ratio of the two $(calc "$alone / $together / ($p2 / $p1)" 3)"
  echo
  echo "   r  link Mbit/s   r meas.  blocking ms  overlapped ms  ideal ms  overl./ideal   predicted: blocking (error)   overlapped (error)"
  measure() {  # r
    local mbit; mbit=$(calc "$gradient * 1048576 * 8 / ($1 * $alone / 1000) / 1e6 / 0.95" 0)
    echo "$mbit" >"$out/rate-$1"
    tools/network.sh mpirun 2 --rate "${mbit}mbit" --core-per-host -- "$starling" "${common[@]}" --write-cluster "$out/cluster-$1.yml" >"$out/$1.json"
  }
  measure 0.5
  bandwidth=$(value "$out/0.5.json" bandwidth_gbit_s)
  for r in 0.25 0.5 1 2; do
    [[ $r == 0.5 ]] || measure $r
    rate=$(cat "$out/rate-$r")
    "$starling" "${common[@]}" --steps $batches --cluster "$out/cluster-0.5.yml" --cluster.timing-only true --workers 2 \
      --cluster.bandwidth-gbit-s "$(calc "$bandwidth * $rate / $(cat "$out/rate-0.5")" 6)" >"$out/predicted.json"
    b=$(value "$out/$r.json" blocking_ms) o=$(value "$out/$r.json" overlapped_ms) i=$(value "$out/$r.json" ideal_ms)
    pb=$(value "$out/predicted.json" blocking_ms) po=$(value "$out/predicted.json" overlapped_ms)
    printf '%4s %12s %9.2f %12.1f %14.1f %9.1f %13.3f %20.1f (%+5.1f %%) %12.1f (%+5.1f %%)\n' $r "$rate" "$(value "$out/$r.json" ratio_r)" \
      "$b" "$o" "$i" "$(calc "$o / $i")" "$pb" "$(calc "100 * ($pb / $b - 1)")" "$po" "$(calc "100 * ($po / $o - 1)")"
  done
  echo
done
