#!/usr/bin/env bash
# Tries what tools/portable.sh has put together in a root directory that has nothing but glibc, libstdc++ and /proc: the version, a
# training, a translation; of a program for cards also that it says why it computes on the processor. Usage: tools/try_portable.sh DIRECTORY
set -euo pipefail
kit=$(realpath "${1:?usage: tools/try_portable.sh DIRECTORY}")
inside=$(mktemp -d)
trap 'rm -rf "$inside"' EXIT
# shellcheck disable=SC2016  # for the inner shell
enter=(unshare --mount sh -c 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"' "$inside")
[[ $(id -u) -eq 0 ]] || enter=(unshare --map-root-user "${enter[@]:1}")

mkdir -p "$inside"/{lib64,lib/x86_64-linux-gnu,dev,proc,tmp,kit/bin}
cp -L /lib64/ld-linux-x86-64.so.2 "$inside/lib64/"
for library in /lib/x86_64-linux-gnu/{libc,libm,libresolv,libstdc++,libgcc_s,libdl,librt,libpthread}.so.{0,1,2,6}; do
  [[ ! -f $library ]] || cp -L "$library" "$inside/lib/x86_64-linux-gnu/"
done
: >"$inside/dev/null"
cp -r "$kit/lib" "$inside/kit/"
cp "$kit"/bin/starling{,-lab} "$inside/kit/bin/"
if ! "${enter[@]}" /lib64/ld-linux-x86-64.so.2 --version >/dev/null 2>&1; then
  echo "The archive was not tried in an empty root directory: that needs root, or user namespaces (unshare -r)" >&2
  exit 0
fi
run() { env -i PATH="$PATH" HOME=/tmp "${enter[@]}" /kit/bin/starling "$@"; }

run --version
run demo-corpus --output /tmp/corpus --train 300 --valid 10 --test 10 >/dev/null
run train --data.source /tmp/corpus/train.en --data.target /tmp/corpus/train.de --valid.source /tmp/corpus/valid.en \
  --valid.target /tmp/corpus/valid.de --model.preset transformer-tiny --vocab.size 300 --train.max-steps 4 --train.output /tmp/run \
  2>&1 | tee "$inside/train.log"
run translate --model /tmp/run --input /tmp/corpus/test.en --output /tmp/test.de --quiet
[[ $(wc -l <"$inside/tmp/test.de") -eq 10 ]] || { echo "not all sentences were translated" >&2 && exit 1; }
run bench train --preset transformer-tiny --seconds 0.1 --batch-tokens 100 >/dev/null  # the laboratory
version=$(run --version)
if grep -q '^cards *no NVIDIA card can be used' <<<"$version"; then
  grep 'computing on the processor: no NVIDIA card can be used' "$inside/train.log" ||
    { echo "the training does not say why it computes on the processor" >&2 && exit 1; }
fi
echo "tried in an empty root directory: version, training, translation"
