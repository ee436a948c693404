#!/bin/bash
# Runs of two ranks that are disturbed at a random time, each round in the next of these ways:
#   kill     a rank is killed                       launch starts the run again
#   freeze   a rank is stopped (SIGSTOP)            the other names it after the deadline, launch starts the run again
#   rank     SIGTERM to a rank                      all save and end, launch starts the run again
#   launch   SIGTERM to launch                      all save and end; the same command continues
#   mpirun   SIGTERM to mpirun                      likewise
#   job      SIGTERM to launch, mpirun and ranks    likewise, as at the end of a job's time
#   orphans  mpirun is killed                       its ranks end too, launch starts the run again
#   link     a host's network goes down             all end; the same command continues (needs root: tools/network.sh)
# All ranks are gone within the deadline and 5 s, the run ends as one that nobody disturbed, bit for bit, and neither a process nor a
# temporary file is left.
#   disturbed.sh STARLING [ROUNDS, default 1] [KIND..., default all that are possible here]
set -euo pipefail
starling=$(realpath "$1") rounds=${2:-1} kinds=("${@:3}")
network=$(dirname "$(realpath "$0")")/../../tools/network.sh
[[ ${#kinds[@]} -gt 0 ]] || kinds=(kill freeze rank launch mpirun job orphans link)
work=$(mktemp -d)
trap 'cd /; rm -rf "$work"; [[ $kind != link ]] || "$network" down' EXIT
cd "$work"
deadline=4 updates=2000 round=0 kind=none run=whole
for ((i = 0; i < 300; ++i)); do echo "a$((i % 7)) b$((i % 5)) c$((i % 3)) d$((i % 11))"; done > a
sed 's/a/x/; s/b/y/' a > b
train=(train --data.source a --data.target b --vocab.size 60 --model.preset transformer-tiny --model.width 32 --model.feed-forward 64
  --train.batch-tokens 400 --train.max-steps $updates --train.learning-rate 0.003 --train.warmup 10 --train.precision f32 --train.threads 1
  --checkpoint.every 50 --train.seed 7 --strategy.deadline-seconds $deadline --log.progress never)
launch=("$starling" launch -n 2 --bind none --mpirun-args --oversubscribe)
failed() { echo "round $round, $kind: $1"; cat "$run.log"; exit 1; }

# The ranks of a run, their launch and their mpirun.
ranks() {
  local pid
  for pid in $(pgrep -f -- "train --data.source a .*--train.output $run" || true); do
    [[ $(readlink "/proc/$pid/exe") == "$starling" && $(tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null) == *OMPI_COMM_WORLD_RANK=* ]] &&
      echo "$pid"
  done 2>/dev/null || true
}
rank_of() { tr '\0' '\n' < "/proc/$1/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p'; }
mpirun_of() { pgrep -f -- "^mpirun .*--train.output $run( |\$)" || true; }

# Waits until these processes are gone; fails if that takes longer than the deadline and 5 s.
all_gone() {
  local began=$SECONDS pid
  for pid in "$@"; do
    while [[ -d /proc/$pid && $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null) != Z ]]; do
      ((SECONDS - began <= deadline + 5)) || failed "process $pid is still there after $((SECONDS - began)) s"
      sleep 0.05
    done
  done
}
until_it_trains() {
  local i
  for ((i = 0; i < 600; ++i)); do
    compgen -G "$run/checkpoints/step-*" > /dev/null && break
    sleep 0.05
  done
  sleep "0.$((RANDOM % 10))"
}
check_end() {
  local file
  for file in model.safetensors rank-0.safetensors; do
    cmp "whole/checkpoints/step-0000$updates/$file" "$run/checkpoints/step-0000$updates/$file" ||
      failed "it did not end as the undisturbed run"
  done
  ! pgrep -f -- "--train.output $run( |\$)" > left || failed "processes are left: $(cat left)"
  [[ -z $(find "$run" -name '.tmp-*' -o -name '.old-*') ]] || failed "files are left: $(find "$run" -name '.*')"
}

# One round under launch: disturbs the run, and sees it end.
with_launch() {
  local victim number pids mpirun status=0
  "${launch[@]}" --restarts 3 --restart-pause 0.1s -- "${train[@]}" --train.output "$run" > "$run.log" 2>&1 &
  local pid=$!
  until_it_trains
  mapfile -t pids < <(ranks)
  mpirun=$(mpirun_of)
  [[ ${#pids[@]} == 2 && -n $mpirun ]] || failed "the run was over before it could be disturbed"
  victim=${pids[RANDOM % 2]} number=$(rank_of "$victim")
  case $kind in
    kill) kill -9 "$victim" ;;
    freeze) kill -STOP "$victim" ;;
    rank) kill -TERM "$victim" ;;
    launch) kill -TERM $pid ;;
    mpirun) kill -TERM "$mpirun" ;;
    job) kill -TERM $pid "$mpirun" "${pids[@]}" ;;
    orphans) kill -9 "$mpirun" ;;
  esac
  all_gone "${pids[@]}" "$mpirun"
  wait $pid || status=$?
  if [[ $kind == launch || $kind == mpirun || $kind == job ]]; then
    ((status == 143)) || failed "launch ended with status $status, not 143"
    ! grep -q "restart 1 of 3" "$run.log" || failed "it was started again"
    grep -q "stopped by signal 15; the same command continues" "$run.log" || failed "it was not saved"
    "${launch[@]}" -- "${train[@]}" --train.output "$run" >> "$run.log" 2>&1 || failed "it was not continued"
  else
    ((status == 0)) || failed "launch ended with status $status"
    grep -q "restart 1 of 3" "$run.log" || failed "it was not started again"
  fi
  if [[ $kind == kill || $kind == freeze ]]; then grep -qE "rank $number( |:|\b)" "$run.log" || failed "rank $number is not named"; fi
}

# Two hosts, of which the second one's network goes down. Its daemon of Open MPI waits for the network, and is ended with it.
with_hosts() {
  local pids mpirun status=0
  local only="10.77.0.0/24" command
  command=(env "OMPI_MCA_plm_rsh_agent=$network agent" OMPI_MCA_orte_keep_fqdn_hostnames=1 "$network" exec 1 "$starling" launch
    --hosts 10.77.0.1:1,10.77.0.2:1 --bind none
    --mpirun-args "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include $only --mca oob_tcp_if_include $only"
    -- "${train[@]}" --train.output "$run")
  "${command[@]}" > "$run.log" 2>&1 &
  local pid=$!
  until_it_trains
  mapfile -t pids < <(ranks)
  mpirun=$(mpirun_of)
  [[ ${#pids[@]} == 2 ]] || failed "the run was over before it could be disturbed"
  ip -n starling-net-2 link set eth0 down
  all_gone "${pids[@]}"
  wait $pid || status=$?
  ((status == 5)) || failed "launch ended with status $status, not 5"
  all_gone "$mpirun"
  grep -qE "rank [01] on host[12] has not been heard of" "$run.log" || failed "nobody is named"
  "$network" down
  "$network" up 2 --rate none
  "${command[@]}" >> "$run.log" 2>&1 || failed "it was not continued"
}

"${launch[@]}" -- "${train[@]}" --train.output whole > whole.log 2>&1 || failed "the undisturbed run failed"
declare -A done_of
for ((round = 1; round <= rounds; ++round)); do
  kind=${kinds[$(((round - 1) % ${#kinds[@]}))]} run=run-$round
  if [[ $kind == link ]]; then
    if ! "$network" up 2 --rate none >/dev/null 2>&1; then
      echo "no network namespaces here: the round with a link is left out"
      continue
    fi
    with_hosts
    "$network" down
  else
    with_launch
  fi
  check_end
  done_of[$kind]=$((${done_of[$kind]:-0} + 1))
done
for kind in "${!done_of[@]}"; do echo "$kind: ${done_of[$kind]} of ${done_of[$kind]} rounds ended as the undisturbed run"; done
