#!/usr/bin/env python3
"""Aligns the words of a small parallel text: IBM's model 1 with a preference for the diagonal (Dyer et al. 2013), in both directions,
joined by grow-diag (Koehn et al. 2003). A stand-in for fast_align, which larger texts need.
Usage: align.py SOURCE TARGET > LINKS"""
import collections
import math
import sys

ITERATIONS, TENSION, NULL = 6, 4.0, 0.08


def words(path):
    return [[w.strip('.,;:!?"').lower() or w for w in line.split()] for line in open(path, encoding="utf-8")]


def prior(i, j, n, m):
    """Of target word j of m coming from source word i of n, not normalised."""
    return math.exp(-TENSION * abs(i / n - j / m))


def train(sources, targets):
    """Returns for each pair of sentences the source word of each target word, or None."""
    table = collections.defaultdict(lambda: 1e-3)
    best = []
    for iteration in range(ITERATIONS):
        counts, totals = collections.defaultdict(float), collections.defaultdict(float)
        last = iteration + 1 == ITERATIONS
        for source, target in zip(sources, targets):
            n, m = len(source), len(target)
            choices = []
            for j, word in enumerate(target):
                priors = [prior(i, j, n, m) for i in range(n)]
                scale = (1 - NULL) / (sum(priors) or 1)
                p = [scale * priors[i] * table[source[i], word] for i in range(n)] + [NULL * table[None, word]]
                if last:
                    i = max(range(n + 1), key=p.__getitem__)
                    choices.append(i if i < n else None)
                    continue
                whole = sum(p)
                for i, x in enumerate(p):
                    key = source[i] if i < n else None
                    counts[key, word] += x / whole
                    totals[key] += x / whole
            best.append(choices) if last else None
        if not last:
            table = collections.defaultdict(lambda: 1e-9, {pair: c / totals[pair[0]] for pair, c in counts.items()})
    return best


def join(forward, backward):
    """Links in both directions, and their neighbours in either that link a word which has no link yet."""
    links, union = forward & backward, forward | backward
    grown = True
    while grown:
        grown = False
        for i, j in sorted(links):
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    near = (i + di, j + dj)
                    new = not any(a == near[0] for a, _ in links) or not any(b == near[1] for _, b in links)
                    if near in union and near not in links and new:
                        links.add(near)
                        grown = True
    return links


def main():
    sources, targets = words(sys.argv[1]), words(sys.argv[2])
    forward, backward = train(sources, targets), train(targets, sources)
    for f, b in zip(forward, backward):
        links = join({(i, j) for j, i in enumerate(f) if i is not None}, {(i, j) for i, j in enumerate(b) if j is not None})
        print(" ".join(f"{i}-{j}" for i, j in sorted(links)))


if __name__ == "__main__":
    main()
