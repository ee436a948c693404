#!/usr/bin/env bash
# Makes the kit for a machine with a card from the last commit, whatever else lies in the working tree, and tries its scripts here.
# Usage: bench/gpu/kit.sh [ARCHIVE.tar.xz]     (build/kit.tar.xz)
#   STEPS='probe memory bits'    the steps to try; all by default, none with '-'
# The commit is checked out in build/kit-source, whose build directory is kept: the next kit compiles what has changed.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
archive=$(realpath "${1:-$root/build/kit.tar.xz}")
source=$root/build/kit-source
cd "$root"
commit=$(git rev-parse HEAD)
[[ -z $(git status --porcelain --untracked-files=no) ]] || echo "what is not committed is left out"
if [[ -e $source/.git ]]; then
  git -C "$source" checkout --quiet --detach "$commit"
else
  git worktree prune
  git worktree add --quiet --detach "$source" "$commit"
fi
export STARLING_DATA=${STARLING_DATA:-$(realpath -m "$root/../shared/data")}
BUILD=$source/build/portable "$source/tools/portable.sh" --cuda --tests "$archive"

[[ ${STEPS:-} == - ]] && exit 0
kit=$root/build/kit
rm -rf "$kit" && mkdir -p "$kit"
tar -xf "$archive" -C "$kit"
# shellcheck disable=SC2086  # several steps
DEVICE=cpu SCALE=${SCALE:-10} BUDGET=${BUDGET:-3600} OUT=$root/build/kit/first-light WORK=$root/build/kit/work "$kit/first_light.sh" ${STEPS:-}
! grep -E ' (FAILED|timeout) ' "$root/build/kit/first-light/summary.txt"
