#!/usr/bin/env python3
"""Do texts become the same pieces here as by sacremoses and subword-nmt, or by Moses's scripts, and the same texts again?

    bench/peers/moses.py PROGRAM SACREMOSES SUBWORD_NMT MOSES LANGUAGE:FILE...

PROGRAM is bench_moses_pieces; SACREMOSES, SUBWORD_NMT and MOSES are checkouts of github.com/hplt-project/sacremoses,
github.com/rsennrich/subword-nmt and github.com/moses-smt/mosesdecoder. Codes of 2,000 merges are learnt from each file. Each line says, for
a language and a pipeline (sacremoses as Argos Translate calls it, Perl as OPUS-MT's preprocess.sh does, with the built-in abbreviations and
with those of Moses), in how many lines pieces and texts are equal. Lines that differ go to standard error.
"""
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import types

MERGES = 2000


def stand_in(name, **parts):
    """sacremoses imports packages for its command line and for several processes, which are not needed here."""
    try:
        __import__(name)
    except ImportError:
        module = types.ModuleType(name)
        module.__dict__.update(parts)
        sys.modules[name] = module


def ours(program, mode, language, codes, abbreviations, options, lines):
    made = subprocess.run([program, mode, language, codes, abbreviations, *options], input="\n".join(lines) + "\n", text=True,
                          encoding="utf-8", capture_output=True, check=True)
    return made.stdout.split("\n")[:-1]


def report(name, lines, theirs, mine):
    assert len(theirs) == len(mine) == len(lines), (name, len(lines), len(theirs), len(mine))
    wrong = [(line, a, b) for line, a, b in zip(lines, theirs, mine) if a != b]
    print(f"{name:58} {len(lines) - len(wrong):6} of {len(lines)}", flush=True)
    for line, a, b in wrong[:int(os.environ.get("SHOW", "10"))]:
        print(f"{name}\n  line   {line!r}\n  theirs {a!r}\n  ours   {b!r}", file=sys.stderr)


def main():
    program, sacremoses, subword, moses, *files = sys.argv[1:]
    sys.path[:0] = [sacremoses, subword]
    stand_in("joblib", Parallel=None, delayed=None)
    stand_in("tqdm", tqdm=lambda steps: steps)
    stand_in("regex")
    stand_in("click")
    sys.modules["sacremoses"] = package = types.ModuleType("sacremoses")  # without its command line
    package.__path__ = [str(pathlib.Path(sacremoses) / "sacremoses")]
    package.__file__ = str(pathlib.Path(sacremoses) / "sacremoses" / "__init__.py")
    package.__spec__ = __import__("importlib.util").util.spec_from_file_location("sacremoses", package.__file__)
    from sacremoses.normalize import MosesPunctNormalizer
    from sacremoses.tokenize import MosesDetokenizer, MosesTokenizer
    from subword_nmt.apply_bpe import BPE
    from subword_nmt.learn_bpe import learn_bpe
    scripts = pathlib.Path(moses) / "scripts"

    def perl(script, lines, *options):
        made = subprocess.run(["perl", str(scripts / "tokenizer" / f"{script}.perl"), *options], input="\n".join(lines) + "\n", text=True,
                              encoding="utf-8", capture_output=True, check=True)
        return made.stdout.split("\n")[:-1]

    for each in files:
        language, path = each.split(":", 1)
        lines = [line for line in open(path, encoding="utf-8").read().split("\n") if line.strip()]
        normalizer, tokenizer, detokenizer = MosesPunctNormalizer(language), MosesTokenizer(language), MosesDetokenizer(language)
        tokens = [" ".join(tokenizer.tokenize(normalizer.normalize(line))) for line in lines]
        with tempfile.TemporaryDirectory() as folder:
            codes = str(pathlib.Path(folder) / "codes")
            with open(codes, "w", encoding="utf-8") as out:
                learn_bpe(io.StringIO("\n".join(tokens)), out, MERGES)
            for version in ("0.2", "0.1"):
                if version == "0.1":  # in which the end of a word is merged by itself
                    older = [line.split(" ") for line in open(codes, encoding="utf-8").read().split("\n")[1:-1]]
                    with open(codes, "w", encoding="utf-8") as out:
                        for left, right in older:
                            plain = right.removesuffix("</w>")
                            out.write(f"{left} {plain}\n")
                            if plain != right:
                                out.write(f"{left}{plain} </w>\n")
                bpe = BPE(open(codes, encoding="utf-8"))
                pieces = [" ".join(bpe.segment_tokens(line.strip("\r\n ").split(" "))) for line in tokens]
                name = f"{language} sacremoses, codes {version}"
                for kind in ("-", str(scripts / "share" / "nonbreaking_prefixes" / f"nonbreaking_prefix.{language}")):
                    if not (kind == "-" or os.path.exists(kind)):
                        continue
                    what = "built-in" if kind == "-" else "Moses's"
                    report(f"{name}, {what} abbreviations", lines, pieces, ours(program, "split", language, codes, kind, [], lines))
            text = [detokenizer.detokenize(line.replace("@@ ", "").split(" ")) for line in pieces]
            report(f"{language} sacremoses, text", lines, text, ours(program, "join", language, codes, "-", [], pieces))
            prepared = perl("remove-non-printing-char", perl("replace-unicode-punctuation", lines))
            prepared = perl("normalize-punctuation", prepared, "-l", language)
            tokens = [" ".join(line.split()) for line in perl("tokenizer", prepared, "-q", "-a", "-l", language)]
            pieces = [" ".join(bpe.segment_tokens(line.strip("\r\n ").split(" "))) for line in tokens]
            options = ["perl", "split-hyphens", "plain-asian-marks"]
            for kind in ("-", str(scripts / "share" / "nonbreaking_prefixes" / f"nonbreaking_prefix.{language}")):
                if kind == "-" or os.path.exists(kind):
                    what = "built-in" if kind == "-" else "Moses's"
                    report(f"{language} Perl, {what} abbreviations", lines, pieces,
                           ours(program, "split", language, codes, kind, options, lines))
            text = perl("detokenizer", [line.replace("@@ ", "") for line in pieces], "-q", "-l", language)
            report(f"{language} Perl, text", lines, text, ours(program, "join", language, codes, "-", options, pieces))


main()
