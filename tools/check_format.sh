#!/usr/bin/env bash
# Does the code have the layout of .clang-format, and is no line or file too long? Code: 140 columns and 450 lines, which a stranger reads
# in one go; prose: 100 columns, but for tables, links, what the program prints itself (docs/reference/config.md) and what stands between
# ```. Scripts of studies, whose tables have long rows, are left out. Prints each place; ends with 1 if there is one.
# Usage: tools/check_format.sh
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -e .git ]] || { echo "This is no git checkout: the layout of the code is not checked"; exit 0; }
status=0

# Each version has a layout of its own; Debian 12 has 14.
if command -v clang-format >/dev/null && clang-format --version | grep -q ' version 14\.'; then
  git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format --dry-run -Werror || status=1
else
  echo "There is no clang-format 14 (apt-get install clang-format): only the lengths of lines are checked"
fi

git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' '*.inc' '*.py' '*.cmake' '*CMakeLists.txt' Makefile .ci/run 'tools/*.sh' 'tests/*.sh' |
  xargs -0 python3 -c '
import sys
status = 0
for path in sys.argv[1:]:
    number = 0
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        if len(line.rstrip("\n")) > 140:
            print(f"{path}:{number}: {len(line) - 1} columns; 140 are allowed")
            status = 1
    if path.endswith((".h", ".cpp", ".cu", ".cuh")) and number > 450:
        print(f"{path}: {number} lines; 450 are allowed")
        status = 1
sys.exit(status)' || status=1

git ls-files -z '*.md' ':!docs/reference/config.md' | xargs -0 python3 -c '
import re, sys
status = 0
for path in sys.argv[1:]:
    fenced = False
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif len(line) > 100 and not fenced and not line.lstrip().startswith("|") and not re.search(r"\S{60}", line):
            print(f"{path}:{number}: {len(line)} columns; 100 are allowed")
            status = 1
sys.exit(status)' || status=1
exit "$status"
