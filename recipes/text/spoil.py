#!/usr/bin/env python3
"""Spoils 40 % of parallel text in eight ways, 5 % each: writes it as OUT/dirty.tsv, and the pairs that were left alone as OUT/clean.tsv.
Usage: recipes/text/spoil.py SOURCE TARGET OUT"""
import pathlib, random, sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import planted_dirt

WAYS = ["another line's target", "half a target", "copied source", "copied target", "swapped sides", "encoding", "markup on one side",
        "loop"]


def main():
    source, target, out = sys.argv[1:]
    pairs = planted_dirt.read_pairs(source, target)
    text, ways = planted_dirt.spoil_all(pairs, WAYS, 0.05, random.Random(1))
    planted_dirt.write_pairs(f"{out}/dirty.tsv", text)
    planted_dirt.write_pairs(f"{out}/clean.tsv", [pair for pair, way in zip(text, ways) if not way])
    print(", ".join(f"{way} {ways.count(way)}" for way in WAYS) + f", left alone {ways.count('')}")


if __name__ == "__main__":
    main()
