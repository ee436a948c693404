#!/usr/bin/env bash
# A race on Multi30k English-German.
# Usage: recipes/race/run.sh [RECIPE, default recipes/race/tiny.yml] [starling race options, e.g. --output DIRECTORY]
# Data and program: recipes/multi30k/find.sh.
set -euo pipefail
. "$(dirname "$0")/../multi30k/find.sh"
recipe=${1:-$root/recipes/race/tiny.yml}
shift || true
exec "$starling" race "$recipe" --set data.source="$data/train.en.gz" --set data.target="$data/train.de.gz" \
  --set valid.source="$data/valid.en" --set valid.target="$data/valid.de" "$@"
