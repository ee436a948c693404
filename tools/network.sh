#!/usr/bin/env bash
# A real network on one machine: K network namespaces ("hosts") with a link each, of a chosen rate in both directions, to one switch. The
# switch has a namespace of its own, so nothing of the machine's own network is touched and no packet leaves it. Needs root; exits with
# status 77 where privileges or tools are missing, so that a test can be skipped.
#
#   tools/network.sh up K [--rate 1gbit]        hosts 1 to K, addresses 10.77.0.1 to 10.77.0.K
#   tools/network.sh exec HOST COMMAND...       runs a command on a host
#   tools/network.sh counters                   bytes received and sent by each host, from the kernel's counters
#   tools/network.sh down                       removes everything, also what a crash left behind
#   tools/network.sh mpirun K [--rate R] [--ranks-per-host N] [--core-per-host] [--counters] [--mpirun-args "..."] -- PROGRAM ARGUMENT...
#                                               up, PROGRAM on all hosts by Open MPI, down. --core-per-host gives each host one core,
#                                               in turn; --counters prints the counters at the end.
#
# RATE is what tc understands, for example 100mbit, 1gbit, 5gbit; "none" leaves the links unshaped. Rates are of Ethernet frames: TCP's
# payload is at most 1448/1514 = 95.6 % of them.
#
# Measured on 2 cores (kernel 6.18), 2 hosts, what a rank sends in a ring all-reduce of 100 MB, both directions at once
# (tests/mpi: test_mpi --measure=100): 100mbit 96 Mbit/s, 1gbit 953 Mbit/s, 5gbit 4.3 Gbit/s (the sums take their share), none 8.5 Gbit/s;
# a 4-byte all-reduce takes 31 us.
set -euo pipefail

prefix=starling-net
subnet=10.77.0
switch=$prefix-switch

say() { echo "network.sh: $*" >&2; }
die() { say "$*"; exit 2; }
usage() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; }

# --- what the machine must allow -----------------------------------------------------------------------------------------------------
require() {
  local tool
  for tool in ip tc unshare taskset; do
    command -v "$tool" >/dev/null || { say "$tool is missing (Debian: iproute2, util-linux)"; exit 77; }
  done
  [[ $(id -u) -eq 0 ]] || { say "network namespaces need root"; exit 77; }
}
# Runs a command that privileges may forbid.
permitted() {
  local message
  message=$("$@" 2>&1) || { say "not permitted here: $*: $message"; down; exit 77; }
}

hosts() { ip netns list 2>/dev/null | awk '{print $1}' | grep -E "^$prefix-[0-9]+$" | sort -t- -k3 -n || true; }
exists() { ip netns list 2>/dev/null | awk '{print $1}' | grep -q "^$prefix-"; }

# --- up and down ---------------------------------------------------------------------------------------------------------------------
# The bucket must hold what passes between two ticks of a 250 Hz kernel, and one large packet as the sender makes them (64 KiB).
shape() {  # namespace device rate
  [[ $3 == none ]] && return
  local bits burst
  bits=$(to_bits "$3")
  burst=$((bits / 8 / 250))
  [[ $burst -ge 131072 ]] || burst=131072
  # 50 ms of queue: TCP fills it without losing packets all the time.
  permitted ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$3" burst "$burst" latency 50ms
}

to_bits() {
  local number=${1%%[a-z]*} unit=${1##*[0-9]}
  [[ $number =~ ^[0-9]+$ ]] || die "'$1' is no rate; write for example 100mbit or 1gbit"
  case $unit in
    kbit) echo $((number * 1000)) ;;
    mbit) echo $((number * 1000000)) ;;
    gbit) echo $((number * 1000000000)) ;;
    *) die "'$1' is no rate; write for example 100mbit or 1gbit" ;;
  esac
}

up() {  # K rate
  local k=$1 rate=$2 i host
  [[ $k =~ ^[0-9]+$ && $k -ge 1 && $k -le 200 ]] || die "the number of hosts is '$k', not 1 to 200"
  [[ $rate == none ]] || to_bits "$rate" >/dev/null
  require
  exists && die "a network is up already; remove it with: tools/network.sh down"
  permitted ip netns add "$switch"
  permitted ip -n "$switch" link add bridge type bridge
  ip -n "$switch" link set bridge up
  for ((i = 1; i <= k; i++)); do
    host=$prefix-$i
    permitted ip netns add "$host"
    permitted ip -n "$switch" link add "port$i" type veth peer name eth0 netns "$host"
    ip -n "$switch" link set "port$i" master bridge up
    ip -n "$host" address add "$subnet.$i/24" dev eth0
    ip -n "$host" link set lo up
    ip -n "$host" link set eth0 up
    shape "$host" eth0 "$rate"
    shape "$switch" "port$i" "$rate"
  done
}

down() {
  local name pids
  for name in $(ip netns list 2>/dev/null | awk '{print $1}' | grep "^$prefix-" || true); do
    pids=$(ip netns pids "$name" 2>/dev/null || true)
    # Only processes of these namespaces: daemons of a run that was killed.
    # shellcheck disable=SC2086
    [[ -z $pids ]] || kill -9 $pids 2>/dev/null || true
    ip netns delete "$name" || true  # its devices go with it
  done
}

counters() {
  local host
  for host in $(hosts); do
    echo "host ${host##*-} received $(ip netns exec "$host" cat /sys/class/net/eth0/statistics/rx_bytes)" \
      "sent $(ip netns exec "$host" cat /sys/class/net/eth0/statistics/tx_bytes)"
  done
}

# --- running something on a host -----------------------------------------------------------------------------------------------------
# Open MPI tells hosts apart by their names, so each gets its own. The core is chosen from those that this script may use.
on_host() {  # number command...
  local i=$1 pin=() cores
  shift
  if [[ -n ${STARLING_NET_CORES:-} ]]; then
    read -ra cores <<<"$STARLING_NET_CORES"
    pin=(taskset -c "${cores[$(((i - 1) % ${#cores[@]}))]}")
  fi
  exec ip netns exec "$prefix-$i" "${pin[@]}" unshare --uts sh -c 'hostname "$0" && exec "$@"' "host$i" "$@"
}

core_list() {
  local range result=()
  for range in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
    # shellcheck disable=SC2207
    result+=($(seq "${range%-*}" "${range#*-}"))
  done
  echo "${result[*]}"
}

run_mpi() {
  local k=${1:-} rate=1gbit per_host=1 show=false core=false extra=() list="" i status=0
  shift || true
  while [[ $# -gt 0 ]]; do
    case $1 in
      --rate) rate=$2; shift 2 ;;
      --ranks-per-host) per_host=$2; shift 2 ;;
      --core-per-host) core=true; shift ;;
      --counters) show=true; shift ;;
      --mpirun-args) read -ra extra <<<"$2"; shift 2 ;;
      --) shift; break ;;
      *) die "there is no option '$1'; see tools/network.sh --help" ;;
    esac
  done
  [[ $# -gt 0 ]] || die "run what? Write -- and the program at the end"
  command -v mpirun >/dev/null || { say "mpirun is missing (Debian: openmpi-bin)"; exit 77; }
  trap down EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # Without this, the trap of a refused `up` would remove the network of somebody else.
  if exists; then trap - EXIT; fi
  up "$k" "$rate"
  for ((i = 1; i <= k; i++)); do list+=${list:+,}$subnet.$i:$per_host; done
  if $core; then
    STARLING_NET_CORES=$(core_list)
    export STARLING_NET_CORES
  fi
  # Only TCP, only on these links: Open MPI would find out that the hosts share memory.
  (on_host 1 mpirun --allow-run-as-root --bind-to none -n $((k * per_host)) -H "$list" \
    --mca plm_rsh_agent "$(realpath "$0") agent" --mca orte_keep_fqdn_hostnames 1 \
    --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include "$subnet.0/24" --mca oob_tcp_if_include "$subnet.0/24" \
    "${extra[@]}" "$@") &
  wait $! || status=$?
  if $show; then counters; fi
  exit "$status"
}

verb=${1:-}
shift || true
case $verb in
  up)
    k=${1:-}
    shift || true
    rate=1gbit
    if [[ ${1:-} == --rate ]]; then rate=${2:-}; fi
    up "$k" "$rate"
    ;;
  down) require && down ;;
  counters) require && counters ;;
  exec) require && on_host "$@" ;;
  mpirun) run_mpi "$@" ;;
  agent)  # what mpirun calls in place of ssh: ADDRESS COMMAND...
    address=$1
    shift
    on_host "${address##*.}" sh -c "$*"
    ;;
  -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
