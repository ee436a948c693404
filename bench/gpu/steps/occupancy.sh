# Three kernels alone, whose time a review expects elsewhere than in memory: warps on an SM, what they wait for, bytes in flight.
((real)) || { echo 'needs a card' && exit; }
for kernel in attention_tiles_backward_kernel smoothed_loss_kernel layer_norm_backward_eights_kernel; do
  timeout 25 ncu --clock-control none --target-processes all --kernel-name "$kernel" --launch-skip 4 --launch-count 2 --kill yes \
    --section Occupancy --section SpeedOfLight --section WarpStateStats --section MemoryWorkloadAnalysis \
    "$starling" bench train $big --device "$DEVICE" --seconds 0.1
done | tee "$OUT/occupancy.txt"
grep -a -c 'Achieved Occupancy' "$OUT/occupancy.txt" >/dev/null || { echo 'ncu measured nothing' && exit 1; }
awk '/_kernel.*\(/ { name = $1 } /Achieved Occupancy/ { printf "%s %s %%; ", name, $NF } END { print "" }' "$OUT/occupancy.txt"
