"""Measures confidence independently of the program, from what it prints: its own alignment of words (edit distance, without moves, so
somewhat fewer words are right than by TER), its own calibration error, area under the curve, chrF and correlations. See confidence.sh."""

import math
import sys
from collections import Counter
from pathlib import Path

MARKS = ".,;:!?\"'()-\u201e\u201c\u201d"


def core(word):
    return word.strip(MARKS) or word


def align(hypothesis, reference):
    """Returns which words of the hypothesis are matched, and the number of edits."""
    h, r = [core(w) for w in hypothesis], [core(w) for w in reference]
    d = [[i + j if i == 0 or j == 0 else 0 for j in range(len(r) + 1)] for i in range(len(h) + 1)]
    for i in range(1, len(h) + 1):
        for j in range(1, len(r) + 1):
            d[i][j] = min(d[i - 1][j - 1] + (h[i - 1] != r[j - 1]), d[i - 1][j] + 1, d[i][j - 1] + 1)
    right, i, j = [0] * len(h), len(h), len(r)
    while i and j:
        if d[i][j] == d[i - 1][j - 1] + (h[i - 1] != r[j - 1]):
            i, j = i - 1, j - 1
            right[i] = int(h[i] == r[j])
        elif d[i][j] == d[i - 1][j] + 1:
            i -= 1
        else:
            j -= 1
    return right, d[len(h)][len(r)]


def chrf(hypothesis, reference):
    h, r = hypothesis.replace(" ", ""), reference.replace(" ", "")
    precision = recall = orders = 0
    for n in range(1, 7):
        a, b = (Counter(t[i:i + n] for i in range(len(t) - n + 1)) for t in (h, r))
        if a and b:
            common = sum((a & b).values())
            precision, recall, orders = precision + common / sum(a.values()), recall + common / sum(b.values()), orders + 1
    if not orders or not precision + recall:
        return 0
    return 5 * precision * recall / (4 * precision + recall) / orders


def error(predicted, observed):
    groups = [[0, 0] for _ in range(10)]
    for p, y in zip(predicted, observed):
        group = groups[min(9, int(10 * p))]
        group[0] += p
        group[1] += y
    return sum(abs(p - y) for p, y in groups) / len(predicted)


def area(values, right):
    ordered = sorted(zip(ranks(values), right))
    rights = sum(right)
    return (sum(r + 1 for r, y in ordered if y) - rights * (rights + 1) / 2) / (rights * (len(right) - rights))


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    result, i = [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j < len(order) and values[order[j]] == values[order[i]]:
            j += 1
        for k in range(i, j):
            result[order[k]] = (i + j - 1) / 2
        i = j
    return result


def pearson(a, b):
    ma, mb = sum(a) / len(a), sum(b) / len(b)
    deviations = math.sqrt(sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b))
    return sum((x - ma) * (y - mb) for x, y in zip(a, b)) / deviations


def fit(rows, right):
    """Logistic regression by Newton's method: means, deviations, weights with the intercept first."""
    n = len(rows[0])
    means = [sum(row[f] for row in rows) / len(rows) for f in range(n)]
    deviations = [math.sqrt(sum((row[f] - means[f]) ** 2 for row in rows) / len(rows)) or 1 for f in range(n)]
    weights = [0.0] * (n + 1)
    for _ in range(12):
        system = [[0.0] * (n + 2) for _ in range(n + 1)]
        for row, y in zip(rows, right):
            x = [1.0] + [(row[f] - means[f]) / deviations[f] for f in range(n)]
            p = 1 / (1 + math.exp(-sum(w * v for w, v in zip(weights, x))))
            for i in range(n + 1):
                for j in range(n + 1):
                    system[i][j] += p * (1 - p) * x[i] * x[j]
                system[i][n + 1] += (y - p) * x[i]
        for i in range(n + 1):
            system[i][i] += 1e-3
            for k in range(n + 1):
                if k != i:
                    factor = system[k][i] / system[i][i]
                    system[k] = [a - factor * b for a, b in zip(system[k], system[i])]
        weights = [w + system[i][n + 1] / system[i][i] for i, w in enumerate(weights)]
    return means, deviations, weights


def predict(model, row):
    means, deviations, weights = model
    return 1 / (1 + math.exp(-weights[0] - sum(w * (x - m) / d for w, x, m, d in zip(weights[1:], row, means, deviations))))


def bergamot_features(path):
    """Of each word: mean and smallest log-probability of its pieces, their number, and the sentence's mean."""
    sentences = []
    for line in open(path, encoding="utf-8"):
        text, _, scores = line.rstrip("\n").partition(" ||| WordScores= ")
        pieces, scores = text.split(" "), [float(s) for s in scores.split()]
        words = []
        for piece, score in zip(pieces, scores):
            if piece.startswith("\u2581") or not words:
                words.append(["", []])
            words[-1][0] += piece.lstrip("\u2581")
            words[-1][1].append(score)
        mean = sum(scores[:len(pieces)]) / max(len(pieces), 1)
        sentences.append([(sum(s) / len(s), min(s), len(s), mean) for text, s in words if text])
    return sentences


def read(directory, name):
    sentences = []
    references = (directory / f"{name}.reference").read_text(encoding="utf-8").splitlines()
    for line, reference in zip((directory / f"{name}.text").read_text(encoding="utf-8").splitlines(), references):
        text, _, rest = line.partition(" ||| Confidence= ")
        value, _, words = rest.partition(" WordConfidence=")
        right, edits = align(text.split(), reference.split())
        sentences.append((text, reference, float(value), [float(w) for w in words.split()], right, edits))
        assert len(sentences[-1][3]) == len(right), line
    return sentences


def main(directory, names):
    four = None
    for name in names:
        sentences = read(directory, name)
        right = [y for s in sentences for y in s[4]]
        words = [w for s in sentences for w in s[3]]
        print(f"== {name}, by this script: {len(words)} words, {100 * sum(right) / len(right):.1f} % of them right")
        print(f"confidence           words: error {error(words, right):.4f}, area {area(words, right):.4f}")
        pieces = directory / f"{name}.pieces"
        if pieces.exists():
            features = bergamot_features(pieces)
            rows = [row for s in features for row in s]
            if len(rows) == len(right):
                four = four or fit(rows, right)
                values = [predict(four, row) for row in rows]
                print(f"four features        words: error {error(values, right):.4f}, area {area(values, right):.4f}"
                      f"  (fitted on {names[0]})")
                print(f"log-probability      words: area {area([row[0] for row in rows], right):.4f}")
        full = [s for s in sentences if s[4]]
        values, shares = [s[2] for s in full], [sum(s[4]) / len(s[4]) for s in full]
        of_chrf = [chrf(s[0], s[1]) for s in full]
        of_ter = [1 - min(1, s[5] / max(1, len(s[1].split()))) for s in full]
        print(f"confidence       sentences: error {error(values, shares):.4f}; Pearson, Spearman: "
              f"chrF {pearson(values, of_chrf):.3f} {pearson(ranks(values), ranks(of_chrf)):.3f}, "
              f"1 - TER {pearson(values, of_ter):.3f} {pearson(ranks(values), ranks(of_ter)):.3f}")
        if pieces.exists() and len(features) == len(sentences):
            means = [f[0][3] for f, s in zip(features, sentences) if s[4]]
            print(f"log-probability  sentences: Pearson, Spearman: chrF {pearson(means, of_chrf):.3f} "
                  f"{pearson(ranks(means), ranks(of_chrf)):.3f}, 1 - TER {pearson(means, of_ter):.3f} "
                  f"{pearson(ranks(means), ranks(of_ter)):.3f}")


main(Path(sys.argv[1]), sys.argv[2:])
