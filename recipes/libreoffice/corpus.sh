#!/usr/bin/env bash
# A parallel corpus, English and another language, from the translations that LibreOffice's Debian packages carry: messages of the
# program and, where there is one, the paragraphs of its help. Nothing is installed; the packages are fetched and unpacked.
# Usage: recipes/libreoffice/corpus.sh LANGUAGE DIRECTORY, e.g. ja corpus-ja (also zh-cn, th, de, fr, ...)
# Writes DIRECTORY/{train,valid,test}.{en,LANGUAGE}: 1,000 pairs each for valid and test, the rest for train; no English text stands
# in two of them. Needs apt-get, dpkg and gettext (msgunfmt).
set -euo pipefail
language=${1:?usage: corpus.sh LANGUAGE DIRECTORY}
directory=${2:?usage: corpus.sh LANGUAGE DIRECTORY}
command -v msgunfmt >/dev/null || { echo "msgunfmt is missing: apt-get install gettext" >&2; exit 1; }
[[ ! -e $directory ]] || { echo "$directory exists already; remove it or name another" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

unpack() { # PACKAGE: into $work/PACKAGE; false if there is none
  apt-cache show "$1" >/dev/null 2>&1 || return 1
  (cd "$work" && apt-get download "$1" >/dev/null 2>&1 && dpkg -x "$1"_*.deb "$1")
}

unpack "libreoffice-l10n-$language" || { echo "there is no package libreoffice-l10n-$language" >&2; exit 1; }
find "$work/libreoffice-l10n-$language" -name '*.mo' | sort | while read -r catalog; do
  msgunfmt --no-wrap "$catalog"
done | awk -f "$here/messages.awk" > "$work/pairs"

if unpack "libreoffice-help-$language" && unpack libreoffice-help-en-us; then
  for side in en-us "$language"; do
    pages=$(find "$work/libreoffice-help-$side" -type d -path '*/help/*/text')
    (cd "$pages" && find . -name '*.html' | LC_ALL=C sort | xargs awk -f "$here/paragraphs.awk") |
      LC_ALL=C sort -t $'\t' -k 1,1 -u > "$work/$side"
  done
  LC_ALL=C join -t $'\t' "$work/en-us" "$work/$language" | cut -f 2,3 >> "$work/pairs"
fi

# Each English text once, what was left untranslated never, in an order that is always the same.
awk -F '\t' '$1 != $2 && $1 ~ /[a-z]/ && $2 != "" && !seen[$1]++' "$work/pairs" |
  shuf --random-source=<(yes) > "$work/all"
mkdir -p "$directory"
write() { # NAME LINES: those lines of all pairs
  sed -n "$2p" "$work/all" | cut -f 1 > "$directory/$1.en"
  sed -n "$2p" "$work/all" | cut -f 2 > "$directory/$1.$language"
}
write valid 1,1000
write test 1001,2000
write train '2001,$'
wc -l "$directory"/*
