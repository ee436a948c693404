#!/usr/bin/env python3
"""Spoils parallel text in thirteen known ways, a known share of its pairs each, cleans it with `starling clean`, and prints for each way
how many spoiled pairs were dropped, or repaired, and how many pairs that were left alone were dropped.
Usage: bench/planted_dirt.py STARLING SOURCE TARGET SOURCE_LANGUAGE TARGET_LANGUAGE [SHARE of each way, default 0.03] [SEED, default 1]
The text may be packed with gzip. `zstd` must be installed. recipes/text/dirt.sh trains on text that is spoiled by the same ways."""
import collections, gzip, html, json, os, pathlib, random, subprocess, sys, tempfile

SHORT = 4  # words: shorter sides are not spoiled in ways that would leave a sentence somebody might have written


def other_numbers(text, rng):
    return "".join(rng.choice("123456789".replace(c, "")) if c.isdigit() else c for c in text)


def mistaken(text):
    """Bytes of UTF-8 read as Windows-1252, as browsers do: what it does not define is a control."""
    if all(ord(c) < 128 for c in text):
        return None
    return "".join(bytes([b]).decode("cp1252") if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(b) for b in text.encode())


def entities(text):
    return html.escape(text).replace("a", "&#97;").replace("ü", "&uuml;")


def spoil(way, pairs, ways, i, rng):
    """A spoiled pair, or None where the way cannot spoil this one."""
    s, t = pairs[i]
    words = t.split()
    if way == "another line's target":
        return s, pairs[rng.randrange(len(pairs))][1]
    if len(words) < SHORT:
        return None
    return {
        "half a target": lambda: (s, " ".join(words[: len(words) // 3])),
        "copied source": lambda: (s, s),
        "copied target": lambda: (t, t),
        "swapped sides": lambda: (t, s),
        "encoding": lambda: mistaken(t) and (s, mistaken(t)),
        "entities": lambda: (entities(s), entities(t)),
        "markup on one side": lambda: (s, f"<div class=\"x\">{t}</div>"),
        "other numbers": lambda: (f"{s} 1947 2389", f"{t} {other_numbers('1947 2389', rng)}"),
        "loop": lambda: (s, t + " " + " ".join(words[-2:] * 4)),
        "glued words": lambda: (s, "".join(words)) if len("".join(words)) > 40 else None,
        "address on one side": lambda: (s, t + " https://a.example/b"),
        "said twice": lambda: tuple(x.upper() + "!" for x in pairs[i - 1]) if i and not ways[i - 1] else None,
    }[way]()


WAYS = ["half a target", "copied source", "copied target", "swapped sides", "encoding", "entities", "markup on one side", "other numbers",
        "loop", "glued words", "address on one side", "said twice", "another line's target"]


def lines(path):
    with (gzip.open(path, "rt", encoding="utf8") if path.endswith(".gz") else open(path, encoding="utf8")) as file:
        return file.read().split("\n")


def read_pairs(source, target):
    """Pairs of both files that have text on both sides, their spaces single."""
    return [(" ".join(s.split()), " ".join(t.split())) for s, t in zip(lines(source), lines(target)) if s.split() and t.split()]


def spoil_all(pairs, of_ways, share, rng):
    """The pairs, a share of them spoiled in each way, and the way of each pair; empty for those that were left alone."""
    text, ways = list(pairs), [""] * len(pairs)
    for i in range(len(pairs)):
        draw = rng.random() / share
        if draw < len(of_ways) and (spoiled := spoil(of_ways[int(draw)], pairs, ways, i, rng)):
            text[i], ways[i] = spoiled, of_ways[int(draw)]
    return text, ways


def write_pairs(path, pairs):
    pathlib.Path(path).write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf8")


def rows(path):
    return subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout.decode().split("\n")[:-1]


def main():
    starling, source, target, source_language, target_language = sys.argv[1:6]
    share, seed = (sys.argv[6:] + ["0.03", "1"][len(sys.argv) - 6 :])[:2]
    share, rng = float(share), random.Random(int(seed))
    pairs = read_pairs(source, target)
    text, ways = spoil_all(pairs, WAYS, share, rng)
    with tempfile.TemporaryDirectory() as work:
        tsv, out = os.path.join(work, "text.tsv"), os.path.join(work, "out")
        write_pairs(tsv, text)
        subprocess.run([starling, "clean", "--data.tsv", tsv, "-o", out, "--data.source-language", source_language,
                        "--data.target-language", target_language], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        dropped = {int(row.split("\t")[1]): row.split("\t") for row in rows(os.path.join(out, "dropped.tsv.zst"))}
        stay = (i for i in range(1, len(text) + 1) if i not in dropped)
        kept = dict(zip(stay, (tuple(row.split("\t")) for row in rows(os.path.join(out, "kept.tsv.zst")))))
        seconds = sum(json.loads(pathlib.Path(out, "clean.json").read_text())["seconds"].values())
    print(f"{len(pairs)} pairs, {seconds:.1f} s\n{'spoiled by':<24} {'pairs':>6} {'dropped':>8} {'repaired':>9} {'left':>6}")
    for way in WAYS:
        all_of = [i for i in range(len(text)) if ways[i] == way]
        gone = sum(i + 1 in dropped for i in all_of)
        repaired = sum(i + 1 in kept and kept[i + 1] == pairs[i] for i in all_of)
        print(f"{way:<24} {len(all_of):>6} {gone:>8} {repaired:>9} {len(all_of) - gone - repaired:>6}")
    clean = [i for i in range(len(text)) if not ways[i]]
    lost = collections.Counter(dropped[i + 1][2] for i in clean if i + 1 in dropped)
    changed = sum(i + 1 in kept and kept[i + 1] != pairs[i] for i in clean)
    gone = sum(lost.values())
    print(f"left alone: {len(clean)}, of which dropped {gone} ({100 * gone / max(len(clean), 1):.2f} %), changed {changed}: "
          + ", ".join(f"{rule} {n}" for rule, n in lost.most_common()))


if __name__ == "__main__":
    main()
