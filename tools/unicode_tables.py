#!/usr/bin/env python3
"""Writes the tables of src/text/tables and src/moses from the Unicode character database.

    tools/unicode_tables.py DIRECTORY

DIRECTORY holds Unicode's own files of the version that src/text/unicode.h names, as Debian's package unicode-data installs them in
/usr/share/unicode. The tables are committed, so building needs neither the files nor Python.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_COLUMNS = 140


def fail(message):
    sys.exit(f"unicode_tables.py: {message}")


def fields(path):
    """The fields of each line of a file of the database, without comments; the first becomes a pair of code points."""
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line:
            first, *rest = [field.strip() for field in line.split(";")]
            ends = [int(end, 16) for end in first.split("..")]
            yield (ends[0], ends[-1]), rest


def property_of(path, name):
    """The code points that have a property."""
    found = set()
    for (first, last), rest in fields(path):
        if rest[0] == name:
            found.update(range(first, last + 1))
    return found


def runs(values):
    """Neighbouring code points with equal values, as (first, last, value)."""
    found = []
    for c in sorted(values):
        if found and found[-1][1] == c - 1 and found[-1][2] == values[c]:
            found[-1][1] = c
        else:
            found.append([c, c, values[c]])
    return found


def lower_runs(lower):
    """Mappings at a constant distance from each other, in steps of 1 or 2, as (first, last, step, distance)."""
    found = []
    todo = sorted(lower)
    while todo:
        first, best = todo[0], []
        for step in (1, 2):
            run = [first]
            while lower.get(run[-1] + step) == run[-1] + step + lower[first] - first:
                run.append(run[-1] + step)
            # A run in steps of 2 must not hide what stands between: nothing there may have a lower case.
            if step == 2 and any(c + 1 in lower for c in run[:-1]):
                continue
            if len(run) > len(best):
                best, best_step = run, step
        found.append((first, best[-1], best_step, lower[first] - first))
        taken = set(best)
        todo = [c for c in todo if c not in taken]
    return found


def hexadecimal(c):
    return f"0x{c:X}"


def plain_runs(code_points):
    return [f"{{{hexadecimal(a)}, {hexadecimal(b)}}}" for a, b, _ in runs(dict.fromkeys(code_points, 1))]


def stepped_runs(code_points):
    """Code points in steps of 1 or 2, as (first, last, step)."""
    found = []
    for c in sorted(code_points):
        run = found[-1] if found else None
        distance = c - run[1] if run else 0
        if run and (distance == run[2] or (run[0] == run[1] and distance in (1, 2))):
            run[1:] = [c, distance]
        else:
            found.append([c, c, 1])
    return found


def write_letters(data, category):
    """Letters and digits as Perl and sacremoses know them. sacremoses has lists of the basic plane of Unicode 7, without Chinese
    characters and Korean syllables, which lack some marks that became alphabetic later."""
    core = data / "DerivedCoreProperties.txt"
    age, script, extensions = {}, {}, {}
    for (first, last), rest in fields(data / "DerivedAge.txt"):
        age.update(dict.fromkeys(range(first, last + 1), tuple(int(part) for part in rest[0].split("."))))
    for (first, last), rest in fields(data / "Scripts.txt"):
        script.update(dict.fromkeys(range(first, last + 1), rest[0]))
    for (first, last), rest in fields(data / "ScriptExtensions.txt"):
        extensions.update(dict.fromkeys(range(first, last + 1), rest[0].split()))
    became = {0xF82, 0xF83, 0x1063, 0x1064, *range(0x1069, 0x106E), *range(0x1087, 0x108E), 0x108F, 0x109A, 0x109B, 0x1C36, 0xA802,
              0xA80B, 0xA9E5, 0xAA7B, 0xAA7C, 0xAA7D, 0xD58, 0xD59, 0xD5A, 0xD5B, 0xD5C, 0xD5D, 0xD5E, 0xD76, 0xD77, 0xD78}
    alphabetic, lower = property_of(core, "Alphabetic"), property_of(core, "Lowercase")
    counted = alphabetic | {c for c in category if category[c][0] == "N"}
    younger = {c for c in counted if c < 0x10000 and age[c] > (7, 0)} | became
    small = [f"{{{hexadecimal(a)}, {hexadecimal(b)}, {step}}}" for a, b, step in stepped_runs(lower)]

    def writing(name, code, most):
        found = {c for c in script if script[c] == name} | {c for c in extensions if code in extensions[c]}
        return plain_runs({c for c in found if age[c] <= most})

    write("letters", "Letters and digits, and what sacremoses, whose lists are those of Unicode 7, does not know of the basic plane.",
          ("CodePoints kAlphabetic", plain_runs(alphabetic)),
          ("CodePoints kNumbers", plain_runs({c for c in category if category[c][0] == "N"})),
          ("CodePoints kDigits", plain_runs({c for c in category if category[c] == "Nd"})),
          ("CodePoints kCurrency", plain_runs({c for c in category if category[c] == "Sc"})),
          ("CodePoints kControl", plain_runs({c for c in category if category[c] in ("Cc", "Cf", "Co")})),
          ("CodePoints kYounger", plain_runs(younger)),
          ("CodePoints kHanScript", plain_runs({c for c in script if script[c] == "Han" and c < 0x10000})),
          ("CodePoints kHan", writing("Han", "Hani", (8, 0))),
          ("CodePoints kHiragana", writing("Hiragana", "Hira", (6, 0))),
          ("CodePoints kKatakana", writing("Katakana", "Kana", (6, 0))),
          ("CodePoints kHangul", writing("Hangul", "Hang", (6, 0))),
          ("SmallRun kSmall", small), folder="moses")


def write(name, what, *tables, folder="text/tables"):
    text = f"// {what}\n// Made by tools/unicode_tables.py; do not edit.\n// clang-format off\n"
    for declaration, entries in tables:
        lines = [""]
        for entry in entries:
            if len(lines[-1]) + len(entry) + 6 > MOST_COLUMNS:
                lines.append("")
            lines[-1] += (" " if lines[-1] else "") + entry + ","
        text += f"constexpr {declaration}[] = {{\n" + "".join(f"    {line}\n" for line in lines) + "};\n"
    (ROOT / "src" / folder / f"{name}.inc").write_text(text + "// clang-format on\n", encoding="utf-8")


def main():
    if len(sys.argv) != 2:
        fail("give the directory of Unicode's files, e.g. /usr/share/unicode")
    data = pathlib.Path(sys.argv[1])
    wanted = re.search(r'kUnicodeVersion = "(.*?)"', (ROOT / "src/text/unicode.h").read_text()).group(1)
    core, emoji = data / "DerivedCoreProperties.txt", data / "emoji/emoji-data.txt"
    try:
        there = re.search(r"DerivedCoreProperties-(\S+)\.txt", core.read_text(encoding="utf-8")).group(1)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}; give the directory of Unicode's files")
    if there != wanted:
        fail(f"{data} is Unicode {there}, but src/text/unicode.h names {wanted}; change one of them")

    category, lower, combining, decomposition = {}, {}, {}, {}
    first_of_range = None
    for (c, _), rest in fields(data / "UnicodeData.txt"):
        begin = c
        if rest[0].endswith(", First>"):
            first_of_range = c
        if rest[0].endswith(", Last>"):
            begin = first_of_range
        for each in range(begin, c + 1):
            category[each] = rest[1]
        if rest[2] != "0":
            combining[c] = int(rest[2])
        if rest[4] and not rest[4].startswith("<"):
            decomposition[c] = [int(part, 16) for part in rest[4].split()]
        if rest[12]:
            lower[c] = int(rest[12], 16)
    del lower[0x130]  # becomes two characters

    write("lower_case", "Code points with a lower case of one code point; those with the properties Cased and Case_Ignorable.",
          ("LowerRun kLowerRuns", [f"{{{hexadecimal(a)}, {hexadecimal(b)}, {step}, {distance}}}" for a, b, step, distance in
                                   lower_runs(lower)]),
          ("CodePoints kCased", plain_runs(property_of(core, "Cased"))),
          ("CodePoints kCaseIgnorable", plain_runs(property_of(core, "Case_Ignorable"))))
    classes = {c: what[0] for c, what in category.items() if what[0] in "PSN"}
    write("character_class", "Code points of the general categories P, S and N.",
          ("ClassRun kClassRuns", [f"{{{hexadecimal(a)}, {hexadecimal(b)}, {what}}}" for a, b, what in runs(classes)]))
    pictures = {c for name in ("Emoji", "Extended_Pictographic", "Emoji_Component") for c in property_of(emoji, name) if c > 0x7F}
    parts = {0x200D, 0x20E3, 0xFE0F} | set(range(0xE0020, 0xE0080))  # of sequences only
    write("emoji", "Code points that are emoji of their own.", ("CodePoints kEmoji", plain_runs(pictures - parts)))
    write("default_ignorable", "Code points with the property Default_Ignorable_Code_Point.",
          ("CodePoints kDefaultIgnorable", plain_runs(property_of(core, "Default_Ignorable_Code_Point"))))
    excluded = property_of(data / "DerivedNormalizationProps.txt", "Full_Composition_Exclusion")
    write("decomposition", "Canonical decompositions of one step (second: 0 if there is none), and pairs that are not composed again.",
          ("Decomposition kDecompositions", [f"{{{', '.join(hexadecimal(part) for part in [c, *decomposition[c], 0][:3])}}}" for c in
                                             sorted(decomposition)]),
          ("CodePoints kNotComposed", plain_runs({c for c in excluded if len(decomposition[c]) == 2})))
    write_letters(data, category)
    write("combining_class", "Canonical combining classes that are not 0.",
          ("CombiningRun kCombiningRuns", [f"{{{hexadecimal(a)}, {hexadecimal(b)}, {what}}}" for a, b, what in runs(combining)]))

main()
