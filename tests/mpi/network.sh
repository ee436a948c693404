#!/usr/bin/env bash
# The tests between two hosts of tools/network.sh, and the bytes of a ring all-reduce against the kernel's counters of the interfaces.
# Status 77 where network namespaces are not permitted.
# Usage: network.sh TEST_PROGRAM
set -u
program=$1
network=$(dirname "$0")/../../tools/network.sh

"$network" mpirun 2 --rate 1gbit -- "$program" --gtest_brief=1 || exit $?

# Each of 2 ranks sends 20 MB. Frames carry 1448 bytes of payload in 1514, acknowledgements and Open MPI's own messages come on top; but the
# kernel hands packets of up to 64 KiB to these interfaces and counts the headers of such a packet once. So the counters lie a little above
# the payload, by less than 3 %.
output=$("$network" mpirun 2 --rate 1gbit --counters -- "$program" --ring=20) || exit $?
echo "$output"
sent=$(awk '/^sent/ {print $2}' <<<"$output")
for host in 1 2; do
  counted=$(awk -v host=$host '$1 == "host" && $2 == host {print $6}' <<<"$output")
  awk -v sent="$sent" -v counted="$counted" -v host=$host 'BEGIN {
    more = 100 * (counted / sent - 1)
    printf "host %d: %d bytes counted by the interface, %+.2f %% against the %d of the schedule\n", host, counted, more, sent
    exit !(sent == 20000000 && more > 0 && more < 3) }' || { echo "FAILED"; exit 1; }
done
