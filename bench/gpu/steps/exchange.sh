# Among all cards of this machine: the ring beside NCCL's own, in buckets of 4 and 64 MiB. Needs mpirun, and a program with MPI (make build
# CUDA=1), which the kit has not: PROGRAM names it.
((real)) || { echo 'needs cards' && exit; }
cards=$(nvidia-smi --list-gpus | wc -l)
((cards > 1)) || { echo 'one card: nothing to exchange' && exit; }
command -v mpirun >/dev/null && [[ -n ${PROGRAM:-} ]] || { echo "$cards cards, but no mpirun or no PROGRAM with MPI" && exit; }
mpirun -n "$cards" "$PROGRAM" bench exchange --device cuda --mib 800 --buckets 4,64 | tee "$OUT/exchange.txt"
status=${PIPESTATUS[0]}
grep -a 'buckets of' "$OUT/exchange.txt" | sed 's/  */ /g' | paste -sd ';'
exit "$status"
