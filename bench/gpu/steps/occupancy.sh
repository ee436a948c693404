# Three kernels alone, whose time a review expects elsewhere than in memory: warps on an SM, what they wait for, bytes in flight.
((real)) || { echo 'needs a card' && exit; }
for kernel in 'regex:attention_tiles?_backward_kernel' 'regex:(held|smoothed)_loss_kernel' layer_norm_backward_eights_kernel; do
  timeout 25 ncu --clock-control none --target-processes all --kernel-name "$kernel" --launch-skip 4 --launch-count 2 --kill yes \
    --section Occupancy --section SpeedOfLight --section WarpStateStats --section MemoryWorkloadAnalysis \
    "$starling" bench train $big --device "$DEVICE" --seconds 0.1
done | tee "$OUT/occupancy.txt"
for kernel in attention loss norm; do
  grep -a -q "${kernel}.*_kernel.*(" "$OUT/occupancy.txt" || { echo "ncu measured no kernel of $kernel" && exit 1; }
done
awk '/_kernel.*\(/ { name = $1 } /Achieved Occupancy/ { printf "%s %s %%; ", name, $NF } END { print "" }' "$OUT/occupancy.txt"
