#!/usr/bin/env bash
# Installs a Debian package in an empty Debian 12, trains and translates with it by the program, by C, by C++ and by Python, and removes it;
# nothing may be left. Training is that of the demo, up to four minutes. Needs root and debootstrap; the mirror is the one that this
# machine uses.
# Usage: tools/try_package.sh PACKAGE.deb
set -euo pipefail
package=$(realpath "${1:?usage: tools/try_package.sh PACKAGE.deb}")
root=$(cd "$(dirname "$0")/.." && pwd)
for tool in debootstrap chroot; do
  command -v $tool >/dev/null || { echo "$tool is missing: apt-get install debootstrap" >&2; exit 1; }
done
[[ $(id -u) -eq 0 ]] || { echo "a root directory of its own needs root" >&2; exit 1; }
system=$(mktemp -d)
chmod 755 "$system"
leave() { umount "$system/proc" 2>/dev/null || true; rm -rf "$system"; }
trap leave EXIT

mirror=${MIRROR:-$(apt-get --print-uris download base-files 2>/dev/null | sed -n "s,^'\(.*\)/pool/.*,\1,p" | head -n 1)}
[[ $mirror ]] || { echo "apt has no Debian mirror; name one: MIRROR=http://... $0" >&2; exit 1; }
echo "an empty Debian 12"
debootstrap --variant=minbase bookworm "$system" "$mirror" >"$system.log" 2>&1 || { tail "$system.log"; exit 1; }
rm -f "$system.log"
cp -r /etc/apt/apt.conf.d "$system/etc/apt/"  # a proxy, for example
cp /etc/resolv.conf "$system/etc/" 2>/dev/null || true
mount -t proc proc "$system/proc"
inside() {
  chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
quietly() { "$@" >"$system/root/output" 2>&1 || { cat "$system/root/output"; exit 1; }; }
state() { (cd "$system" && find . \( -path ./proc -o -path ./root -o -path ./var -o -path ./tmp \) -prune -o -print | sort); }

quietly inside apt-get update -qq
# What the package and these programs need from Debian, so that the difference is the package's own.
cp "$package" "$system/root/starling.deb"
needs=$(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/,/ /g')
# shellcheck disable=SC2086
quietly inside apt-get install -y -qq --no-install-recommends $needs python3 g++ cmake make pkg-config man-db
state >"$system/root/before"
echo "installing $(basename "$package")"
quietly inside apt-get install -y -qq --no-install-recommends /root/starling.deb

echo "training and translating"
inside starling --version | head -n 1
inside starling bench train --preset transformer-tiny --seconds 0.1 --batch-tokens 100 >/dev/null  # the laboratory
cp "$root/recipes/demo.yml" "$system/root/"
inside bash -euo pipefail -c 'cd /root && starling demo-corpus --output run-demo/corpus >/dev/null &&
  starling train -c demo.yml --train.output run --log.progress never >/dev/null &&
  starling translate --quiet -m run <run-demo/corpus/test.en >test.txt &&
  starling evaluate --hypotheses test.txt --references run-demo/corpus/test.de &&
  head -n 20 run-demo/corpus/test.en >source && head -n 20 test.txt >program.txt'
cp -r "$root/tests/consumer" "$system/root/"
inside bash -euo pipefail -c 'cd /root
  cmake -S consumer -B consumer/build >log 2>&1 && cmake --build consumer/build >>log 2>&1 || { cat log; exit 1; }
  consumer/build/translate_cpp run <source >cpp.txt && cmp cpp.txt program.txt
  python3 consumer/translate.py run <source >python.txt && cmp python.txt program.txt
  cc consumer/translate.c -o by_pkg_config $(pkg-config --cflags --libs starling)
  head -n 1 program.txt >first.txt
  ./by_pkg_config run "$(head -n 1 source)" >c.txt && cmp c.txt first.txt
  man --warnings -l /usr/share/man/man1/starling-train.1* >/dev/null
  source /usr/share/bash-completion/completions/starling && complete -p starling >/dev/null'

echo "removing"
quietly inside apt-get purge -y -qq starling
state >"$system/root/after"
diff "$system/root/before" "$system/root/after" && echo "installed, trained, translated and removed without a trace"
