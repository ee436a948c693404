"""Are placeholders lost or doubled? Plants one to three placeholders of 25 kinds in each of 2,000 sentences of the built-in corpus,
translates them as a document with each of the given models, and counts them in the translations. Ends with 1 if one is missing, doubled or
changed, or if lines are.

Usage: bench/placeholders.py STARLING MODEL...      (bench/placeholders.py build/release/starling run-demo/model)
"""

import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SENTENCES = 2000
NAMES = "name user count file path title host value total item page author city email first_name itemCount".split()


def kinds(r):
    """Returns an instance of each kind."""
    name, n, letters = r.choice(NAMES), r.randrange(1, 100), "".join(r.choices("abcdefghij", k=5))
    return {
        "address": f"https://{letters}.example.org/{name}?a={n}#x_{n}",
        "mail": f"{letters}.{n}@example.org",
        "user": f"@{letters}{n}",
        "tag": f"#{letters}{n}",
        "short code": f":{letters}_{n}:",
        "braces": f"{{{name}{n}}}",
        "double braces": f"{{{{ {name}.{letters}{n} }}}}",
        "dollar": f"${{{name}{n}}}",
        "ruby": f"%{{{name}{n}}}",
        "printf": f"%{n}$s",
        "python": f"%({name}{n})s",
        "angles": f"%<{name}{n}>d",
        "symfony": f"%{letters}{n}%",
        "laravel": f":{letters}_{n}",
        "underscores": f"__{letters.upper()}{n}__",
        "weblate": f"[X{n}X]",
        "i18next": f"$t({letters}.{name}{n})",
        "vue": f"@:{letters}.{name}{n}",
        "go": f"%[{n}]d",
        "code": f"`{letters} -{n}`",
        "role": f":ref:`{letters}-{n}`",
        "path": f"/{letters}/{name}/{n}.txt",
        "version": f"v{n}.{r.randrange(9)}.{r.randrange(9)}-rc{n}",
        "time": f"2026-11-{r.randrange(10, 30)}T{r.randrange(10, 24)}:{r.randrange(10, 60)}:{r.randrange(10, 60)}Z",
        "emoji": r.choice(["\U0001F389", "\U0001F469\u200D\U0001F52C", "\u2764\uFE0F", "\U0001F1E9\U0001F1EA", "3\uFE0F\u20E3"]),
    }


def planted(sentences, seed):
    """Returns lines and what was planted in each; every kind occurs equally often at the beginning, in the middle and at the end."""
    r = random.Random(seed)
    lines, all_planted = [], []
    for i, sentence in enumerate(sentences):
        words, there = sentence.split(), []
        for k in range(1 + i % 3):
            kind = list(kinds(r).items())[(i + 7 * k) % 25]
            if any(kind[1] in other or other in kind[1] for _, other in there):
                continue
            words.insert(r.choice([0, r.randrange(len(words) + 1), len(words)]), kind[1])
            there.append(kind)
        lines.append(" ".join(words))
        all_planted.append(there)
    return lines, all_planted


def occurrences(text, placeholder):
    before, behind = r"(?<![\w%$])" * placeholder[0].isalnum(), r"(?![\w$])" * placeholder[-1].isalnum()
    return len(re.findall(before + re.escape(placeholder) + behind, text))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    starling, models = sys.argv[1], sys.argv[2:]
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        corpus = Path(directory) / "corpus"
        subprocess.run([starling, "demo-corpus", "--output", corpus], check=True, stdout=subprocess.DEVNULL)
        sentences = [line for name in ("test.en", "valid.en", "train.en") if (corpus / name).exists()
                     for line in (corpus / name).read_text(encoding="utf-8").splitlines()][:SENTENCES]
        for seed, model in enumerate(models):
            lines, all_planted = planted(sentences, seed)
            run = subprocess.run([starling, "translate", "--model", model, "--document", "--format", "text", "--quiet"], check=True,
                                 input="".join(line + "\n" for line in lines).encode(), stdout=subprocess.PIPE)
            translations = run.stdout.decode().split("\n")[:-1]
            wrong = {}
            total = sum(len(there) for there in all_planted)
            for line, there, translation in zip(lines, all_planted, translations):
                for kind, placeholder in there:
                    if occurrences(translation, placeholder) != 1:
                        wrong.setdefault(kind, []).append((placeholder, line, translation))
            count = sum(len(cases) for cases in wrong.values())
            print(f"{model}: {len(lines)} sentences, {len(translations)} translations, {total} placeholders, {count} lost, doubled or "
                  "changed")
            for kind, cases in sorted(wrong.items()):
                placeholder, line, translation = cases[0]
                print(f"  {kind}: {len(cases)}, such as {placeholder}\n    {line}\n    {translation}")
            failed |= count > 0 or len(lines) != len(translations)
    sys.exit(failed)


if __name__ == "__main__":
    main()
