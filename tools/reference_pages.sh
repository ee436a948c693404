#!/usr/bin/env bash
# Writes anew the pages of docs/reference that the program makes: the tables of config.md, and verbs.md. tests/settings/config_test.cpp and
# tests/program/verbs_page_test.cpp hold them against the program.
# Usage: tools/reference_pages.sh [BUILD_DIRECTORY]   (build/release)
set -euo pipefail
cd "$(dirname "$0")/.."
starling=$(realpath "${1:-build/release}")/starling
pages=docs/reference

# Names of the verbs that `starling ARGUMENTS --help` lists.
verbs() { "$starling" "$@" --help | sed -n '/^Verbs:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'; }

# What a verb prints about itself, without the keys of the configuration, which config.md has.
section() {
  printf '\n## %s\n\n```\n' "$*"
  "$starling" "$@" --help | sed '/^Every key of the configuration/,$d' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
  printf '```\n'
}

{
  sed '/^## data$/,$d' $pages/config.md
  "$starling" train --help-markdown
} > $pages/config.md.new
{
  cat <<'TEXT'
# The verbs

What `starling VERB --help` prints about each verb; `--help-all` adds the options that few people
need. `train`, `simulate`, `plan` and `tune` also take every key of
[the configuration](config.md) as an option, `--section.key VALUE`. `starling help` lists the verbs.

`tools/reference_pages.sh` makes this page.
TEXT
  for verb in $(verbs); do
    section "$verb"
    for part in $(verbs "$verb"); do section "$verb" "$part"; done
  done
} > $pages/verbs.md.new
for page in config verbs; do mv $pages/$page.md.new $pages/$page.md; done
