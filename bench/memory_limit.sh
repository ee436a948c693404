#!/bin/bash
# A Transformer that needs four times the memory that a rank may use: one rank alone is killed, four stages train it, four shards train it,
# and one worker and four shards translate with it. Each rank runs in a cgroup of its own, so this needs root, and Open MPI.
#   bench/memory_limit.sh STARLING [LIMIT_MIB] [WORK_DIRECTORY]
set -euo pipefail
starling=$(realpath "${1:?usage: bench/memory_limit.sh STARLING [LIMIT_MIB] [WORK_DIRECTORY]}")
limit=${2:-800}
work=${3:-$(mktemp -d)}
ranks=4
[ "$(id -u)" = 0 ] || { echo "memory_limit.sh: cgroups can be made by root only" >&2; exit 77; }
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  root=/sys/fs/cgroup key=memory.max
  echo +memory > $root/cgroup.subtree_control
else
  root=/sys/fs/cgroup/memory key=memory.limit_in_bytes
fi
groups=()
cleanup() { for g in "${groups[@]}"; do rmdir "$g" 2>/dev/null || true; done; }
trap cleanup EXIT
for ((r = 0; r < ranks; ++r)); do
  group=$root/starling-limit-$$-$r
  mkdir "$group" && groups+=("$group")
  echo $((limit << 20)) > "$group/$key"
done
mkdir -p "$work" && cd "$work"
cat > limited.sh <<EOF
#!/bin/sh
echo \$\$ > $root/starling-limit-$$-\${OMPI_COMM_WORLD_RANK:-0}/cgroup.procs
exec "\$@"
EOF
chmod +x limited.sh
[ -d corpus ] || "$starling" demo-corpus --output corpus
cat > big.yml <<'EOF'
data: {source: corpus/train.en, target: corpus/train.de}
vocab: {size: 2000, character-coverage: 1.0}
model: {preset: transformer-base, encoder-layers: 16, decoder-layers: 16}
train: {output: stages, batch-tokens: 800, learning-rate: 0.0005, warmup: 50, max-steps: 12, threads: 1}
valid: {source: corpus/valid.en, target: corpus/valid.de, every: 6, metrics: [cross-entropy], batch-tokens: 500}
checkpoint: {every: 6, keep: 1}
log: {every: 2}
EOF
rm -rf stages shards alone
rates="--cluster.forward-gflops 100 --cluster.backward-gflops 100 --cluster.update-gb-s 5 --cluster.memory-gb-s 8"
echo "== the plan, with $limit MiB per rank"
"$starling" plan -c big.yml --workers $ranks --network loopback $rates --parallel.pipeline $ranks --parallel.micro-batches 16 \
  --memory "$(awk "BEGIN { print $limit / 1024 }")" --show 5
together="mpirun --allow-run-as-root --oversubscribe --bind-to none -n $ranks ./limited.sh $starling"
echo "== one rank alone"
status=0
./limited.sh "$starling" train -c big.yml --train.output alone > alone.log 2>&1 || status=$?
grep warning alone.log || true
echo "exit status $status (137: killed)"
for layout in stages shards; do
  echo "== $ranks $layout"
  keys="--parallel.pipeline $ranks --parallel.micro-batches 16"
  [ $layout = stages ] || keys="--parallel.tensor $ranks --train.micro-batch-tokens 100"
  $together train -c big.yml --train.output $layout $keys | grep -E "stage |step |valid|complete|error"
done
echo "== translated by one worker within the limit, and by $ranks shards"
head -3 corpus/test.en | ./limited.sh "$starling" translate --model stages --threads 1 --beam 1
head -3 corpus/test.en > few.en
$together translate --model shards --threads 1 --beam 1 --precision f32 --parallel.tensor $ranks --input few.en
