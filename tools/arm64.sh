#!/usr/bin/env bash
# Compiles Starling for 64-bit Arm on this machine and runs tests of it under qemu: ops, models, decoding, formats, data and text
# (not base and run, whose tests need a real kernel: limits, threads, what a kill leaves).
# Debian's arm64 packages are unpacked into build/arm64/sysroot; nothing of this system changes, except for the cross compiler, qemu and
# debootstrap, which are installed if they are missing (as root).
# Usage: tools/arm64.sh [TEST...]
#   TEST: a test program without test_, such as ops; all of the above if none is given. Program: build/arm64/starling.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD/build/arm64 sysroot=$PWD/build/arm64/sysroot
tests=("$@")
[[ ${#tests[@]} -gt 0 ]] || tests=(text ops decode interop models)

missing=()
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static)
command -v debootstrap >/dev/null || missing+=(debootstrap)
if [[ ${#missing[@]} -gt 0 ]]; then
  [[ $(id -u) -eq 0 ]] || { echo "Install these as root and try again: apt-get install ${missing[*]}" >&2; exit 1; }
  echo "Installing ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The first stage of debootstrap fetches packages with all that they need; their files are enough for a compiler.
if [[ ! -e $sysroot/complete ]]; then
  [[ $(id -u) -eq 0 ]] || { echo "unpacking Debian's packages needs root once: sudo $0" >&2; exit 1; }
  echo "Fetching Debian's arm64 packages"
  rm -rf "$sysroot"
  mkdir -p "$sysroot"
  mirror=${MIRROR:-$(apt-get --print-uris download base-files 2>/dev/null | sed -n "s,^'\(.*\)/pool/.*,\1,p" | head -n 1)}
  packages=libc6-dev,libstdc++-12-dev,libgomp1,libdnnl-dev,libsentencepiece-dev,libcli11-dev,libfmt-dev,libyaml-cpp-dev,nlohmann-json3-dev
  packages+=,zlib1g-dev,libzstd-dev,libmicrohttpd-dev,libcld2-dev,libgtest-dev,libgmock-dev,libcurl4-openssl-dev,libopenmpi-dev
  packages+=,libmd4c-dev,libyaml-dev,libre2-dev,libxxhash-dev,nettle-dev,libutf8proc-dev
  debootstrap --foreign --arch=arm64 --variant=minbase --include="$packages" bookworm "$sysroot" "$mirror" >"$root/debootstrap.log" 2>&1 ||
    { tail "$root/debootstrap.log"; exit 1; }
  for package in "$sysroot"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
  rm -rf "$sysroot/var/cache/apt"
  # Links with whole paths would lead out of the directory.
  find "$sysroot" -type l -lname '/*' | while read -r link; do
    ln -snf "$(realpath -m --relative-to="$(dirname "$link")" "$sysroot$(readlink "$link")")" "$link"
  done
  touch "$sysroot/complete"
fi

cmake -S . -B "$root" --toolchain cmake/arm64.cmake -DSTARLING_SYSROOT="$sysroot" -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
  --log-level=WARNING >/dev/null
cmake --build "$root" --parallel "${JOBS:-$(nproc)}" --target starling $(printf 'test_%s ' "${tests[@]}")
qemu() { qemu-aarch64-static -L "$sysroot" "$@"; }
qemu "$root/starling" --version
status=0
for test in "${tests[@]}"; do
  began=$SECONDS
  qemu "$root/tests/test_$test" --gtest_brief=1 --gtest_filter="${FILTER:-*}" >"$root/$test.log" 2>&1 ||
    { tail -n 40 "$root/$test.log"; status=1; }
  echo "test_$test: $(grep -E '^\[  (PASSED|SKIPPED)' "$root/$test.log" | tr -s ' \n[]' ' ') ($((SECONDS - began)) s)"
done
exit "$status"
