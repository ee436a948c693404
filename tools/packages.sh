#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, if any is missing. Without root it says what to install.
# Usage: tools/packages.sh
set -euo pipefail

packages=(
  g++ cmake ninja-build   # the build
  libdnnl-dev             # oneDNN: matrix products
  libsentencepiece-dev    # subword vocabularies
  libcli11-dev            # command lines
  libfmt-dev              # text formatting
  libyaml-cpp-dev         # configurations
  nlohmann-json3-dev      # JSON reports
  zlib1g-dev libzstd-dev  # .gz and .zst corpora
  libxxhash-dev           # checksums of token stores
  nettle-dev              # SHA-256
  libutf8proc-dev         # Unicode
  libmicrohttpd-dev       # the server's HTTP
  libcld2-dev             # which language a text is in
  libmd4c-dev             # Markdown
  libyaml-dev             # messages in YAML
  libre2-dev              # placeholders by regular expressions
  libgtest-dev libgmock-dev  # tests
  libcurl4-openssl-dev    # tests of the server, bench_serve
  libopenmpi-dev openmpi-bin  # training with several processes
  libmecab2 mecab-ipadic-utf8  # tests of the tokenizer ja-mecab; not needed to build
  iproute2                # the test between network namespaces (tools/network.sh)
  pybind11-dev python3-dev  # the Python module; not needed to build the program
  libbenchmark-dev        # micro-benchmarks (cmake -DSTARLING_BENCH=ON)
)

if ! command -v dpkg-query >/dev/null; then
  echo "This is not a Debian system: install the equivalents of: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $(id -u) -ne 0 ]]; then
  {
    echo "These Debian packages are missing; install them as root and try again:"
    echo "  apt-get install ${missing[*]}"
  } >&2
  exit 1
fi

echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq </dev/null
apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
