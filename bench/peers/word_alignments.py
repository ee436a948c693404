#!/usr/bin/env python3
"""Alignment error rates of `starling align` on texts whose links were made by hand, trained on these texts alone, by each model.
Usage: bench/peers/word_alignments.py STARLING DIRECTORY [options of align]
DIRECTORY: the examples of awesome-align (Dou and Neubig 2021), for each pair of languages NAME.src-tgt ("source ||| target") and NAME.gold
(links from 1, 3p4 for possible ones)."""
import pathlib, re, subprocess, sys, tempfile

MODELS = ["hmm", "diagonal", "model1"]


def link(text):
    source, kind, target = re.fullmatch(r"(\d+)([-p])(\d+)", text).groups()
    return f"{int(source) - 1}{'-' if kind == '-' else '?'}{int(target) - 1}"


def main():
    starling, directory, options = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    print("| text | pairs | " + " | ".join(MODELS) + " |\n|---|---|" + "---|" * len(MODELS))
    for gold in sorted(directory.glob("*.gold")):
        pairs = [line.split("|||") for line in gold.with_suffix(".src-tgt").read_text(encoding="utf8").splitlines()]
        with tempfile.TemporaryDirectory() as work:
            path = lambda name: str(pathlib.Path(work, name))
            for name, side in ("source", 0), ("target", 1):
                pathlib.Path(path(name)).write_text("".join(" ".join(pair[side].split()) + "\n" for pair in pairs), encoding="utf8")
            lines = gold.read_text().splitlines()
            pathlib.Path(path("gold")).write_text("".join(" ".join(map(link, line.split())) + "\n" for line in lines))
            rates = []
            for model in MODELS:
                subprocess.run([starling, "align", "--quiet", "--parts", "spaces", "--model", model, "--source", path("source"),
                                "--target", path("target"), "-o", path("links"), *options], check=True)
                said = subprocess.run([starling, "evaluate", "--metrics", "aer", "--hypotheses", path("links"),
                                       "--references", path("gold")], check=True, capture_output=True, text=True).stdout
                rates.append(re.search(r"= ([\d.]+)", said).group(1))
        print(f"| {gold.stem} | {len(pairs)} | " + " | ".join(rates) + " |", flush=True)


if __name__ == "__main__":
    main()
