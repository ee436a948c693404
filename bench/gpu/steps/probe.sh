# What the backend takes for granted of CUDA, cuBLASLt and NCCL.
((real)) || { echo 'needs a card' && exit; }
"$kit/bin/probe" | tee "$work/probe.out"
status=${PIPESTATUS[0]}
grep -a '^probe:\|takes every\|launch:' "$work/probe.out" | paste -sd ' '
exit "$status"
