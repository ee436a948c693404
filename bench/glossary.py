#!/usr/bin/env python3
"""What glossaries do to translations: are all terms there, what do they cost in BLEU and time, and does anything else change?

Two glossaries. "usual" is what a user would write: for words of the training text, the translation that goes with them most often, and its
inflected forms (Dice coefficient of at least 0.6 over sentence pairs). "foreign" asks for words that the model never says by itself.
Where it is used, references are changed in the same way.

Usage: bench/glossary.py STARLING MODEL TRAIN.en TRAIN.de TEST.en TEST.de [LINES, 500]
"""
import collections
import gzip
import os
import re
import subprocess
import sys
import tempfile
import time

FOREIGN = {"dog": ["Köter", "Kötern"], "man": ["Herr", "Herrn"], "woman": ["Dame"], "street": ["Boulevard"], "guitar": ["Klampfe"]}
IN_REFERENCE = {"Hund": "Köter", "Hunde": "Köter", "Hunden": "Kötern", "Mann": "Herr", "Mannes": "Herrn", "Frau": "Dame",
                "Straße": "Boulevard", "Gitarre": "Klampfe"}


def lines_of(path):
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def words(line):
    return re.findall(r"\w+", line)


def usual_glossary(source, target):
    count_s, count_t, together = collections.Counter(), collections.Counter(), collections.Counter()
    for s, t in zip(source, target):
        s, t = {w for w in words(s.lower()) if len(w) > 3}, {w for w in words(t) if len(w) > 3}
        count_s.update(s), count_t.update(t)
        together.update((a, b) for a in s for b in t)
    best = {}
    for (a, b), n in together.items():
        dice = 2 * n / (count_s[a] + count_t[b])
        if n >= 20 and dice > max(0.6, best.get(a, (0, ""))[0]):
            best[a] = (dice, b)
    glossary = {}
    for a, (_, b) in best.items():
        stem = b[:max(4, len(b) - 2)]
        forms = [w for w in count_t if w != b and w.startswith(stem) and len(w) <= len(b) + 2 and together[(a, w)] > 2]
        glossary[a] = [b] + forms
    return glossary


def main():
    starling, model, train_s, train_t, test_s, test_t = sys.argv[1:7]
    most = int(sys.argv[7]) if len(sys.argv) > 7 else 500
    source, reference = lines_of(test_s)[:most], lines_of(test_t)[:most]
    work = tempfile.TemporaryDirectory()

    def path(name, lines):
        full = os.path.join(work.name, name)
        with open(full, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
        return full

    input_path = path("source", source)

    def translate(*options):
        begin = time.time()
        run = subprocess.run([starling, "translate", "--quiet", "--model", model, "--input", input_path, *options], check=True,
                             capture_output=True, text=True)
        return run.stdout.splitlines(), time.time() - begin

    def bleu(hypotheses, references, which):
        run = subprocess.run([starling, "evaluate", "--hypotheses", path("h", [hypotheses[i] for i in which]), "--references",
                              path("r", [references[i] for i in which])], check=True, capture_output=True, text=True)
        return float(re.search(r" = ([0-9.]+) ", run.stdout).group(1))

    for name, glossary in ("usual", usual_glossary(lines_of(train_s), lines_of(train_t))), ("foreign", FOREIGN):
        file = path("glossary", ["\t".join([term] + spellings) for term, spellings in glossary.items()])
        changed = [re.sub(r"\w+", lambda m: IN_REFERENCE.get(m.group(), m.group()), line) if name == "foreign" else line
                   for line in reference]
        plain, with_terms, seconds = [], [], [[], []]
        for _ in range(3):
            plain, t = translate()
            seconds[0].append(t)
            with_terms, t = translate("--glossary", file)
            seconds[1].append(t)
        terms = missing = by_itself = in_reference = 0
        which, others = [], []
        for i, line in enumerate(source):
            asked = collections.Counter(w for w in words(line.lower()) if w in glossary)
            (which if asked else others).append(i)
            for term, n in asked.items():
                there = lambda text: min(n, sum(w.lower() in {s.lower() for s in glossary[term]} for w in words(text)))
                terms += n
                missing += n - there(with_terms[i])
                by_itself += there(plain[i])
                in_reference += there(changed[i])
        print(f"{name}: {len(glossary)} entries; {terms} terms in {len(which)} of {len(source)} sentences, {missing} missing "
              f"({by_itself} are there without a glossary, {in_reference} in the references)")
        print(f"  BLEU of these sentences {bleu(with_terms, changed, which):.2f}, without a glossary {bleu(plain, changed, which):.2f}; "
              f"{sum(plain[i] != with_terms[i] for i in others)} of {len(others)} other sentences changed")
        print(f"  seconds {min(seconds[1]):.2f}, without {min(seconds[0]):.2f} (best of 3, interleaved, with loading the model)")


main()
