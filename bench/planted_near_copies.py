#!/usr/bin/env python3
"""Plants near-copies into parallel text: pairs that come a second time with some words of both sides exchanged for others of the text.
Cleans it with `starling clean --clean.near-copies`, and prints by similarity how many of them, and how many that resemble their original on
one side only, were dropped; and of the pairs that were not planted which were dropped, with the similarity to the pair that they were
dropped for. The similarity is computed here: of the pairs of neighbouring words that both have, over those that either has, on the side
where it is less.
Usage: bench/planted_near_copies.py STARLING SOURCE TARGET SOURCE_LANGUAGE TARGET_LANGUAGE [THRESHOLD, default 0.8] [SHARE of near-copies,
default 0.1] [SEED, default 1]
The text may be packed with gzip. `zstd` must be installed."""
import collections, os, pathlib, random, re, subprocess, sys, tempfile

from planted_dirt import lines, rows


def shingles(text):
    words = [re.sub(r"\d+", "0", word) for word in re.findall(r"\w+", text.lower().replace("_", " "))]
    return set(zip(words, words[1:]))


def similarity(a, b):
    def of(side):
        x, y = shingles(a[side]), shingles(b[side])
        return len(x & y) / max(1, len(x | y))
    return min(of(0), of(1))


def changed(text, words, count, rng):
    parts = text.split()
    for at in rng.sample(range(len(parts)), min(count, len(parts))):
        parts[at] = rng.choice(words)
    return " ".join(parts)


def main():
    starling, source, target, source_language, target_language = sys.argv[1:6]
    threshold, share, seed = (sys.argv[6:] + ["0.8", "0.1", "1"][len(sys.argv) - 6 :])[:3]
    threshold, share, rng = float(threshold), float(share), random.Random(int(seed))
    pairs = [(" ".join(s.split()), " ".join(t.split())) for s, t in zip(lines(source), lines(target)) if s.split() and t.split()]
    words = [sorted({word for pair in pairs for word in pair[side].split() if word.isalpha()}) for side in (0, 1)]
    text, original = list(pairs), [None] * len(pairs)
    for _ in range(int(share * len(pairs))):
        i, change = rng.randrange(len(pairs)), rng.randrange(4)
        sides = (0, 1) if rng.random() < 0.8 else (rng.randrange(2),)
        other = [changed(pairs[i][side], words[side], change if side in sides else 99, rng) for side in (0, 1)]
        text.append(tuple(other))
        original.append(i)
    with tempfile.TemporaryDirectory() as work:
        tsv, out = os.path.join(work, "text.tsv"), os.path.join(work, "out")
        pathlib.Path(tsv).write_text("".join(f"{s}\t{t}\n" for s, t in text), encoding="utf8")
        subprocess.run([starling, "clean", "--data.tsv", tsv, "-o", out, "--data.source-language", source_language,
                        "--data.target-language", target_language, "--clean.near-copies", str(threshold)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        dropped = {int(fields[1]) - 1: fields for fields in (row.split("\t") for row in rows(os.path.join(out, "dropped.tsv.zst")))}
    near = {i: int(fields[3].split(":")[1]) - 1 for i, fields in dropped.items() if fields[2] == "near-copy"}
    counts, found = collections.Counter(), collections.Counter()
    for i in range(len(pairs), len(text)):
        # Not of originals that were dropped themselves, nor of copies that broke another rule or have no difference.
        if original[i] in dropped or (i in dropped and i not in near):
            continue
        part = min(int(10 * similarity(text[i], text[original[i]]) + 1e-9), 10)
        counts[part] += 1
        found[part] += i in near
    for part in sorted(counts):
        print(f"planted, similarity {part / 10:.1f} and more: {found[part]} of {counts[part]} dropped ({found[part] / counts[part]:.1%})")
    least = min((similarity(text[i], text[k]) for i, k in near.items()), default=1)
    own = sorted(((similarity(text[i], text[k]), i, k) for i, k in near.items() if i < len(pairs)))
    print(f"the least similarity of a dropped pair to the one that it was dropped for: {least:.3f}")
    print(f"of the {len(pairs)} pairs of the text itself {len(own)} dropped as near-copies, such as")
    for value, i, k in own[:: max(1, len(own) // 8)]:
        print(f"  {value:.2f}  {' | '.join(text[i])}\n        {' | '.join(text[k])}")


if __name__ == "__main__":
    main()
