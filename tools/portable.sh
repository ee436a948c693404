#!/usr/bin/env bash
# Makes an archive of the program with all libraries that it needs, but for glibc, libstdc++ and NVIDIA's: it runs on any x86-64 Linux with
# glibc 2.35 and GCC 12's libstdc++, or newer. The archive is then tried in an empty root directory.
# Usage: tools/portable.sh [--cuda] [--tests] ARCHIVE.tar.xz     (or ARCHIVE.tar.zst, which needs zstd)
#   --cuda    for NVIDIA cards too (needs nvcc)        --tests    with --cuda: the kit for bench/gpu/first_light.sh
# BUILD=build/portable is the build directory. MPI is left out: it belongs to the machine that the program runs on.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cuda=OFF tests=OFF archive=
for argument; do
  case $argument in
    --cuda) cuda=ON ;;
    --tests) tests=ON ;;
    -*) echo "there is no option $argument; usage: tools/portable.sh [--cuda] [--tests] ARCHIVE.tar.xz" >&2 && exit 2 ;;
    *) archive=$(realpath "$argument") ;;
  esac
done
[[ $archive ]] || { echo "usage: tools/portable.sh [--cuda] [--tests] ARCHIVE.tar.xz" >&2 && exit 2; }
[[ $tests == OFF || $cuda == ON ]] || { echo "--tests makes the kit for cards; add --cuda" >&2 && exit 2; }
[[ $archive != *.zst ]] || command -v zstd >/dev/null || { echo "zstd is missing: apt-get install zstd" >&2 && exit 1; }
cd "$root"
build=${BUILD:-build/portable}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

programs=(starling starling-lab) targets=(starling)
if [[ $tests == ON ]]; then
  programs+=(test_cuda test_models test_decode test_train20 probe products)
  targets+=(test_cuda test_models test_decode test_train20 bench_probe bench_products)
fi
# The old kind of RPATH: libraries that libraries need are found by it too.
PATH=$PATH:/usr/local/cuda/bin cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DSTARLING_MPI=OFF \
  -DSTARLING_CUDA=$cuda \
  -DSTARLING_TESTS=$tests -DSTARLING_BENCH=$tests -DCMAKE_BUILD_RPATH="\$ORIGIN/../lib" \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags --log-level=WARNING
PATH=$PATH:/usr/local/cuda/bin cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"

mkdir "$stage/bin" "$stage/lib"
for program in "${programs[@]}"; do
  strip -o "$stage/bin/$program" "$(find "$build" -type f \( -name "$program" -o -name "bench_$program" \) -perm -u+x | head -n 1)"
done
# Of glibc and the compiler, which the machine has: the loader goes with its own libc.
system='/(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so'
for program in "$stage"/bin/*; do ldd "$program"; done | awk '$2 == "=>" { print $3 }' | sort -u | grep -Ev "$system" |
  while read -r library; do cp -L "$library" "$stage/lib/"; done

if [[ $tests == ON ]]; then
  data=${STARLING_DATA:-../shared/data}/multi30k
  [[ -f $data/train.en.gz ]] || { echo "the kit needs Multi30k in $data; set STARLING_DATA" >&2 && exit 1; }
  cp -r bench/gpu/{first_light.sh,each.sh,kernels.py,peer.py,result.py,steps} "$stage/"
  git log -1 --format='%H %s' >"$stage/commit" 2>/dev/null || true
  mkdir -p "$stage/tests" "$stage/data/multi30k"
  cp -r tests/fixtures "$stage/tests/"
  cp "$data"/{train.en.gz,train.de.gz,valid.en,valid.de,test2016.en,test2016.de} "$stage/data/multi30k/"
  cp recipes/multi30k/config.yml "$stage/data/multi30k.yml"
  # The vocabulary, which takes longer than some of the checks.
  "$stage/bin/starling" train -c recipes/multi30k/config.yml --data.source "$data/train.en.gz" --data.target "$data/train.de.gz" \
    --valid.source "$data/valid.en" --valid.target "$data/valid.de" --train.output "$stage/first" --train.max-steps 1 --device cpu
  mv "$stage/first/vocab.spm" "$stage/data/multi30k.spm"
  rm -r "$stage/first"
fi
newest=$(objdump -T "$stage"/bin/* "$stage"/lib/* | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
[[ $(printf '%s\nGLIBC_2.35\n' "$newest" | sort -V | tail -n 1) == GLIBC_2.35 ]] ||
  { echo "something in the archive needs $newest, which is newer than GLIBC_2.35" >&2 && exit 1; }
tools/try_portable.sh "$stage"
name=$(basename "$archive" | sed 's/\.tar\..*//')
case $archive in
  *.zst) pack=(zstd -q -19 -T0 -c) ;;
  *) pack=(xz -9 -T0) ;;
esac
# In a directory of its own, but for the kit, whose script expects its files beside it.
[[ $tests == ON ]] && into=. || into=$name
tar -C "$stage" --transform "s,^\.,$into," -cf - . | "${pack[@]}" >"$archive"
echo "$archive: $(($(stat -c %s "$archive") >> 20)) MiB, $(du -sm "$stage" | cut -f1) MiB unpacked"
