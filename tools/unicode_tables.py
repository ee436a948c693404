#!/usr/bin/env python3
"""Writes src/moses/letters.inc from the Unicode character database: what utf8proc does not know.

    tools/unicode_tables.py DIRECTORY

DIRECTORY holds Unicode's own files, as Debian's package unicode-data installs them in /usr/share/unicode: of the version that utf8proc
knows (utf8proc_unicode_version). The tables are committed, so building needs neither the files nor Python.
"""
import pathlib
import re
import sys

MOST_COLUMNS = 140


def fields(path):
    """The fields of each line of a file of the database, without comments; the first becomes a pair of code points."""
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line:
            first, *rest = [field.strip() for field in line.split(";")]
            ends = [int(end, 16) for end in first.split("..")]
            yield (ends[0], ends[-1]), rest


def values_of(path):
    """The value of each code point."""
    values = {}
    for (first, last), rest in fields(path):
        values.update(dict.fromkeys(range(first, last + 1), rest[0]))
    return values


def property_of(path, name):
    """The code points that have a property."""
    return {c for (first, last), rest in fields(path) if rest[0] == name for c in range(first, last + 1)}


def runs(code_points):
    """Neighbouring code points, as (first, last)."""
    found = []
    for c in sorted(code_points):
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit("unicode_tables.py: give the directory of Unicode's files, e.g. /usr/share/unicode")
    data = pathlib.Path(sys.argv[1])
    core = data / "DerivedCoreProperties.txt"
    version = re.search(r"DerivedCoreProperties-(\S+)\.txt", core.read_text(encoding="utf-8")).group(1)
    category = values_of(data / "extracted/DerivedGeneralCategory.txt")
    script = values_of(data / "Scripts.txt")
    extensions = {c: codes.split() for c, codes in values_of(data / "ScriptExtensions.txt").items()}
    age = {c: tuple(int(part) for part in text.split(".")) for c, text in values_of(data / "DerivedAge.txt").items()}
    alphabetic = property_of(core, "Alphabetic")
    # Marks that became alphabetic later, and numbers of Malayalam.
    became = {0xF82, 0xF83, 0x1063, 0x1064, *range(0x1069, 0x106E), *range(0x1087, 0x108E), 0x108F, 0x109A, 0x109B, 0x1C36, 0xA802,
              0xA80B, 0xA9E5, 0xAA7B, 0xAA7C, 0xAA7D, 0xD58, 0xD59, 0xD5A, 0xD5B, 0xD5C, 0xD5D, 0xD5E, 0xD76, 0xD77, 0xD78}
    counted = alphabetic | {c for c in category if category[c][0] == "N"}

    def writing(name, code, most):
        found = {c for c in script if script[c] == name} | {c for c in extensions if code in extensions[c]}
        return {c for c in found if age[c] <= most}

    text = ("// Letters that are none by their category, and what sacremoses, whose lists are those of Unicode 7, does not know of the\n"
            f"// basic plane. Made by tools/unicode_tables.py from Unicode {version}; do not edit.\n// clang-format off\n")
    for name, code_points in (
            ("kOtherAlphabetic", {c for c in alphabetic if category[c][0] != "L" and category[c] != "Nl"}),
            ("kYounger", {c for c in counted if c < 0x10000 and age[c] > (7, 0)} | became),
            ("kHanScript", {c for c in script if script[c] == "Han" and c < 0x10000}),
            ("kHan", writing("Han", "Hani", (8, 0))),
            ("kHiragana", writing("Hiragana", "Hira", (6, 0))),
            ("kKatakana", writing("Katakana", "Kana", (6, 0))),
            ("kHangul", writing("Hangul", "Hang", (6, 0)))):
        lines = [""]
        for first, last in runs(code_points):
            entry = f"{{0x{first:X}, 0x{last:X}}},"
            if len(lines[-1]) + len(entry) + 5 > MOST_COLUMNS:
                lines.append("")
            lines[-1] += (" " if lines[-1] else "") + entry
        text += f"constexpr CodePoints {name}[] = {{\n" + "".join(f"    {line}\n" for line in lines) + "};\n"
    path = pathlib.Path(__file__).resolve().parent.parent / "src/moses/letters.inc"
    path.write_text(text + "// clang-format on\n", encoding="utf-8")


main()
