#!/usr/bin/env bash
# How the pieces of a vocabulary change with its sample, on a large natural text: the descriptions of Debian's packages in English, and in
# Italian, French and German, from the mirror that apt uses or DEBIAN_MIRROR. Needs curl, xz and bzip2. Three minutes on two cores.
# Usage: bench/vocabulary_sample.sh STARLING DIRECTORY [starling bench vocabulary options]; text that is there already is used.
set -euo pipefail
starling=$1 directory=$2
shift 2
mkdir -p "$directory"
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' | sort -u | head -n 1)}
base=${mirror%/}/dists/bookworm/main/i18n

# One line a package: checksum of the English description, tab, its paragraphs with \001 between them.
paragraphs() {
  awk 'function flush() { if (key != "" && text != "") print key "\t" text; key = text = "" }
       /^Package:/ { flush() }
       /^Description-md5:/ { key = $2 }
       /^Description-[a-zA-Z_]+:/ && !/^Description-md5/ { sub(/^[^:]*: */, ""); text = $0; broken = 1 }
       /^ \.$/ { broken = 1; next }
       /^ / { line = $0; sub(/^ +/, "", line); text = text (broken ? "\001" : " ") line; broken = 0 }
       END { flush() }' | LC_ALL=C sort -t $'\t' -k 1,1 -u
}

if [[ ! -e $directory/train.other ]]; then
  curl -sfL "$base/Translation-en.xz" | xz -d | paragraphs > "$directory/en"
  for language in it fr de; do
    curl -sfL "$base/Translation-$language.bz2" | bzip2 -d | paragraphs > "$directory/$language"
    LC_ALL=C join -t $'\t' "$directory/en" "$directory/$language"
  done | awk -F '\t' -v en="$directory/train.en" -v other="$directory/train.other" '
    { n = split($2, a, "\001"); if (n != split($3, b, "\001")) next
      for (i = 1; i <= n; ++i) if (a[i] != "" && b[i] != "" && a[i] != b[i]) { print a[i] > en; print b[i] > other } }'
  rm "$directory"/{en,it,fr,de}
fi
LC_ALL=C sort -u "$directory/train.en" "$directory/train.other" | wc -lc | awk '{ print $1 " different lines, " $2 / 1e6 " MB" }'
"$starling" bench vocabulary --source "$directory/train.en" --target "$directory/train.other" "$@"
