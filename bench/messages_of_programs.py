#!/usr/bin/env python3
"""Writes what the programs of this machine say, in English and in another language, as parallel text: PREFIX.en and PREFIX.LANGUAGE, each
pair once. Real text with formats, file names and technical words, in many scripts, on which no threshold of `starling clean` was chosen.
Usage: bench/messages_of_programs.py LANGUAGE PREFIX [short | long] [PAIRS, default all] [SEED, default 1]
short: sources of at most four words; long: of at least five. LANGUAGE as in /usr/share/locale, such as de or zh_CN."""
import gettext, pathlib, random, sys


def main():
    language, prefix = sys.argv[1:3]
    kind, count, seed = (sys.argv[3:] + ["any", "0", "1"][len(sys.argv) - 3 :])[:3]
    pairs = {}
    for path in sorted(pathlib.Path("/usr/share/locale", language, "LC_MESSAGES").glob("*.mo")):
        try:
            with open(path, "rb") as file:
                catalog = gettext.GNUTranslations(file)._catalog
        except (OSError, UnicodeDecodeError, ValueError, IndexError):
            continue
        for source, target in catalog.items():
            if not isinstance(source, str) or not source or "\x04" in source:
                continue  # plurals and texts with a context
            source, target = (" ".join(text.split()) for text in (source, target))
            words = len(source.split())
            if source and target and (kind == "any" or (kind == "short") == (words <= 4)):
                pairs.setdefault((source, target))
    chosen = list(pairs)
    if int(count):
        chosen = random.Random(int(seed)).sample(chosen, min(int(count), len(chosen)))
    for side, name in enumerate(("en", language)):
        with open(f"{prefix}.{name}", "w", encoding="utf8") as file:
            file.writelines(pair[side] + "\n" for pair in chosen)
    print(f"{len(chosen)} pairs")


if __name__ == "__main__":
    main()
