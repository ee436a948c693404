#!/usr/bin/env python3
"""What `starling clean` with its defaults says of pairs that other programs have judged, beside what they said: of each of their rules the
pairs that it rejects, how many of them we reject too, and the others; of repairs, how many texts are equal.
Usage: bench/peers/filters.py STARLING FIXTURES [-v: also lists the pairs]
FIXTURES: a directory with pairs.tsv, hardrules.tsv, opusfilter.tsv, opuscleaner.tsv and bifixer.tsv. `zstd` must be installed."""
import collections, json, pathlib, subprocess, sys, tempfile


def table(path):
    rows = [line.split("\t") for line in path.read_text(encoding="utf8").split("\n") if line]
    return [dict(zip(rows[0], row)) for row in rows[1:]]


def rows(path):
    text = subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout.decode()
    return [row.split("\t") for row in text.split("\n")[:-1]]


def cleaned(starling, pairs):
    """By id: our rules that the pair breaks, and its repaired sides."""
    by_languages = collections.defaultdict(list)
    for pair in pairs:
        by_languages[pair["source language"], pair["target language"]].append(pair)
    found = {}
    for (source, target), these in by_languages.items():
        with tempfile.TemporaryDirectory() as work:
            out = pathlib.Path(work, "out")
            for side in "source", "target":
                text = "".join(pair[side] + "\n" for pair in these)
                with open(pathlib.Path(work, side), "w", encoding="utf8", newline="") as file:
                    file.write(text)
            subprocess.run([starling, "clean", "--data.source", f"{work}/source", "--data.target", f"{work}/target", "-o", out,
                            "--data.source-language", source, "--data.target-language", target, "--clean.copies", "off"],
                           check=True, capture_output=True)
            dropped = {int(row[1]): row for row in rows(out / "dropped.tsv.zst")}
            kept = iter(rows(out / "kept.tsv.zst"))
            for line, pair in enumerate(these, 1):
                row = dropped.get(line)
                found[pair["id"]] = (row[2], row[4], row[5]) if row else ("", *next(kept))
    return found


def compare(name, rejected, ours, pairs, verbose):
    both = sum(bool(ours[i][0]) for i in rejected)
    print(f"| {name} | {len(rejected)} | {both} | {len(rejected) - both} |")
    if verbose:
        for i in rejected:
            if not ours[i][0]:
                print(f"    {i} [{pairs[i]['kind']}] {pairs[i]['source'][:70]!r} {pairs[i]['target'][:70]!r}")


def main():
    starling, fixtures = sys.argv[1], pathlib.Path(sys.argv[2])
    verbose = "-v" in sys.argv
    columns = ["id", "source language", "target language", "kind", "source", "target"]
    all_pairs = [dict(zip(columns, line.split("\t"))) for line in (fixtures / "pairs.tsv").read_text(encoding="utf8").split("\n") if line]
    pairs = {pair["id"]: pair for pair in all_pairs}
    ours = cleaned(starling, all_pairs)

    print("| rule of another program | rejects | so do we | we keep |\n|---|---|---|---|")
    by_rule = collections.defaultdict(list)
    for row in table(fixtures / "hardrules.tsv"):
        for rule in row["default_all"].split("+"):
            if rule != "keep":
                by_rule["hardrules " + rule.split("(")[0]].append(row["id"])
    for row in table(fixtures / "opusfilter.tsv"):
        if row["parameters"] == "{}" and row["accept"] not in ("1", "True", "true"):
            by_rule["OpusFilter " + row["filter"]].append(row["id"])
    for row in table(fixtures / "opuscleaner.tsv"):
        if row["keep"] != "1":
            by_rule[f"OpusCleaner {row['filter']} {row['parameters']}".strip()].append(row["id"])
    for rule, ids in sorted(by_rule.items()):
        compare(rule, sorted(set(ids), key=int), ours, pairs, verbose)

    theirs = collections.defaultdict(set)
    for rule, ids in by_rule.items():
        for i in ids:
            theirs[i].add(rule)
    alone = [i for i in pairs if ours[i][0] and not theirs[i]]
    print(f"\nWe reject {sum(bool(o[0]) for o in ours.values())} of {len(pairs)} pairs, {len(alone)} of which none of these rules rejects: "
          + ", ".join(f"{rule} {n}" for rule, n in collections.Counter(ours[i][0] for i in alone).most_common()))
    if verbose:
        for i in alone:
            print(f"    {i} {ours[i][0]} [{pairs[i]['kind']}] {pairs[i]['source'][:70]!r} {pairs[i]['target'][:70]!r}")

    equal = untouched = 0
    different = []
    for row in table(fixtures / "bifixer.tsv"):
        text = json.loads(row["after_fix"])
        mine = ours[row["id"]][1 if row["side"] == "source" else 2]
        if " ".join(text.split()) == mine:
            equal += 1
            untouched += pairs[row["id"]][row["side"]] == mine
        else:
            different.append((row["id"], pairs[row["id"]][row["side"]], text, mine))
    print(f"\nRepairs beside bifixer's fix: {equal} of {equal + len(different)} sides equal, {untouched} of which neither changes")
    if verbose:
        for i, text, fixed, mine in different:
            print(f"    {i} {text[:80]!r}\n        bifixer {fixed[:80]!r}\n        ours    {mine[:80]!r}")


if __name__ == "__main__":
    main()
