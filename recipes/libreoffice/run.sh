#!/usr/bin/env bash
# English to Japanese, Chinese, Thai or any other language of LibreOffice in five minutes of training: fetches the text (corpus.sh),
# trains, translates the test set and prints BLEU and chrF.
# Usage: recipes/libreoffice/run.sh LANGUAGE [RUN_DIRECTORY] [starling train options]
# The program is $STARLING (default build/release/starling); the text is kept in RUN_DIRECTORY-text.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
starling=${STARLING:-$root/build/release/starling}
language=${1:?usage: run.sh LANGUAGE [RUN_DIRECTORY] [starling train options]}
run=${2:-run-libreoffice-$language}
shift $(($# < 2 ? $# : 2))
text=$run-text
[[ -d $text ]] || "$root/recipes/libreoffice/corpus.sh" "$language" "$text"

"$starling" train -c "$root/recipes/libreoffice/config.yml" --train.output "$run" \
  --data.source "$text/train.en" --data.target "$text/train.$language" --data.source-language en --data.target-language "$language" \
  --valid.source "$text/valid.en" --valid.target "$text/valid.$language" "$@"
"$starling" translate --model "$run" --input "$text/test.en" --output "$run/test.translated" --beam 4
"$starling" evaluate --hypotheses "$run/test.translated" --references "$text/test.$language" --metrics bleu,chrf
