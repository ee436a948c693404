"""What CTranslate2's own tests (tests/translator_test.cc, python/tests/test_translator.py) expect of the model aren-transliteration,
asked of Starling's module, or, to see that the expectations are right, of another one.

Usage: PYTHONPATH=build/release/python bench/peers/ct2_cases.py MODEL [MODULE]
Prints a line per case: same, refused (by a sentence) or DIFFERENT, and the result. The status is 1 if any is different.
"""

import collections
import importlib
import os
import shutil
import sys
import tempfile
import warnings

ATZMON, ACHISON, AZZA = list("آتزمون"), list("آتشيسون"), list("آزا")
# The log-probabilities that tests/translator_test.cc gives for three pairs, the end of sentence included.
SCORED = [
    (ATZMON, "atzmon", (-0.106023, -0.065410, -0.056002, -0.447953, -0.230714, -0.092184, -0.063463)),
    (ACHISON, "achison", (-0.072660, -0.300309, -0.181187, -0.395671, -0.025631, -0.123466, -0.002034, -0.012639)),
    (list("آرثر"), "arther", (-0.076704, -0.036037, -0.029253, -0.030273, -0.149276, -0.002440, -0.003742)),
]



def refused(call, kind=ValueError):
    try:
        result = call()
    except kind:
        return "refused"
    return result


TOLERANCE = 1e-3  # of scores; models whose weights are rounded need more


def near(numbers, expected):
    return len(numbers) == len(expected) and all(abs(a - b) < TOLERANCE for a, b in zip(numbers, expected))


def texts(results):
    return ["".join(result.hypotheses[0]) for result in results]


def repeats(tokens, size):
    pieces = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return len(pieces) - len(set(pieces))


def search_cases(t, beam):
    """Yields name, expected result and call: those that CTranslate2 tests with a beam of 1 and of 4."""

    def one(source, prefix=None, **options):
        return t.translate_batch([source], None if prefix is None else [prefix], beam_size=beam, **options)[0]

    def best(source, prefix=None, **options):
        return "".join(one(source, prefix, **options).hypotheses[0])

    def penalised(**options):
        plain = one(ATZMON, return_scores=True, length_penalty=0, **options)
        divided = one(ATZMON, return_scores=True, length_penalty=1, **options)
        return round(plain.scores[0] / divided.scores[0], 3)

    def shapes():
        results = t.translate_batch([AZZA, ATZMON], beam_size=beam, num_hypotheses=beam, return_attention=True)
        return [(len(r.attention), len(r.attention[0]), {len(row) for row in r.attention[0]}) for r in results]

    yield "most tokens", 3, lambda: len(one(ATZMON, max_decoding_length=3).hypotheses[0])
    yield "fewest tokens", 8, lambda: len(one(ATZMON, min_decoding_length=8).hypotheses[0])
    yield "most source tokens", 3, lambda: len(one(ATZMON, max_input_length=3).hypotheses[0])
    yield "all hypotheses", beam, lambda: len(one(ATZMON, num_hypotheses=beam).hypotheses)
    yield "attention", [(beam, 4, {3}), (beam, 6, {6})], shapes
    yield "attention with a prefix", (["<unk>", *"tzmon"], {6}), lambda: (
        lambda r: (r.hypotheses[0], {len(row) for row in r.attention[0]})
    )(one(ATZMON, ["<unk>", "t"], num_hypotheses=beam, return_attention=True))
    yield "end token returned", [*"atzmon", "</s>"], lambda: one(ATZMON, return_end_token=True).hypotheses[0]
    yield "prefix", "atsumon", lambda: best(ATZMON, list("ats"), num_hypotheses=beam, return_attention=True)
    yield "batch", ["azza", "atzmon"], lambda: texts(t.translate_batch([AZZA, ATZMON], beam_size=beam, return_scores=True))
    yield "suppressed sequences", "atzumun", lambda: best(ATZMON, suppress_sequences=[["o"], list("tzm")])
    yield "suppressed unknown token", "refused", lambda: refused(lambda: best(ATZMON, suppress_sequences=[["o"], ["t", "oovtoken"]]))
    yield "end token", "atz", lambda: best(ATZMON, end_token="m")
    yield "unknown end token", "refused", lambda: refused(lambda: best(ATZMON, end_token="oovtoken"))
    yield "unknown tokens replaced", ["ت", *"tzmon"], lambda: one(
        ATZMON, ["<unk>", "t"], num_hypotheses=beam, replace_unknowns=True
    ).hypotheses[0]
    yield "repetition penalty", 0, lambda: repeats(one(["ن"] * 5, repetition_penalty=100).hypotheses[0], 1)
    yield "no repeated 3-gram", 0, lambda: repeats(one(["ن"] * 50, no_repeat_ngram_size=3).hypotheses[0], 3)
    yield "score per token, with the end", 7.0, penalised
    yield "score per token, cut", 6.0, lambda: penalised(max_decoding_length=6)


def batch_cases(t):
    """Yields the other cases of translations."""

    def out(sources, prefixes=None, **options):
        return texts(t.translate_batch(sources, prefixes, **options))

    def alternatives(prefix, count, **options):
        (result,) = t.translate_batch([ATZMON], [list(prefix)], num_hypotheses=count, return_alternatives=True, **options)
        return ["".join(tokens) for tokens in result.hypotheses]

    three = [list("ats"), [], list("atzo"), []]
    yield "no sentences", [], lambda: t.translate_batch([])
    yield "empty sources", ["", "azza", "", "atzmon", ""], lambda: out([[], AZZA, [], ATZMON, []])
    yield "only empty sources", ["", ""], lambda: out([[], []])
    yield "score of an empty source", [0], lambda: t.translate_batch([[]], return_scores=True)[0].scores
    yield "no score unless asked for", [], lambda: t.translate_batch([ATZMON])[0].scores
    yield "prefixes and an empty source", ["atsumon", "atzmon", "atzomon", "", "azza"], lambda: out(
        [ATZMON, ATZMON, ATZMON, [], AZZA], [*three, []]
    )
    for beam in (1, 2):
        yield f"strong bias, beam {beam}", ["atsumon", "atzmon", "atzomon", "azza"], lambda beam=beam: out(
            [ATZMON, ATZMON, ATZMON, AZZA], three, prefix_bias_beta=0.99, beam_size=beam
        )
        yield f"weak bias, beam {beam}", ["atzmon", "atzmon", "atzmon", "azza"], lambda beam=beam: out(
            [ATZMON, ATZMON, ATZMON, AZZA], [list("atsss"), [], list("atzo"), []], prefix_bias_beta=0.01, beam_size=beam
        )
    yield "prefix, large beam", ["ulises"], lambda: out([list("أوليسس")], [list("ulise")], beam_size=5)
    yield "alternatives", ["atzmon", "atsumon"], lambda: alternatives("at", 10)[:2]
    yield "number of alternatives", 10, lambda: len(alternatives("at", 10))
    yield "probable alternatives", 6, lambda: len(alternatives("at", 10, min_alternative_expansion_prob=0.001))
    yield "alternatives without a prefix", "atzmon", lambda: alternatives("", 10)[0]
    yield "alternatives after all", "atzmone", lambda: alternatives("atzmon", 4)[0]
    yield "alternatives with sampling", "refused", lambda: refused(lambda: alternatives("at", 2, sampling_topk=5, beam_size=1))
    yield "no hypotheses", "refused", lambda: refused(lambda: t.translate_batch([ATZMON], num_hypotheses=0))
    yield "no beam", "refused", lambda: refused(lambda: t.translate_batch([ATZMON], beam_size=0))
    yield "patience", 8, lambda: len(t.translate_batch([ATZMON], beam_size=4, patience=2, num_hypotheses=8)[0].hypotheses)
    yield "score of greedy and of beam", 0.0, lambda: round(
        t.translate_batch([ATZMON], beam_size=1, return_scores=True)[0].scores[0]
        - t.translate_batch([ATZMON], beam_size=2, return_scores=True)[0].scores[0],
        5,
    )
    yield "beam of 22 and 50", (22, True), lambda: (
        len(t.translate_batch([ATZMON], beam_size=22, num_hypotheses=22)[0].hypotheses),
        len(t.translate_batch([ATZMON], beam_size=50, num_hypotheses=50)[0].hypotheses) > 40,
    )
    yield "coverage penalty", ["atzmon"], lambda: out([ATZMON], beam_size=4, coverage_penalty=0.2)
    yield "unknown tokens", ["atzmon", True, True], lambda: [
        out([ATZMON], disable_unk=True)[0],
        bool(out([["Ω", "ن"]])[0]),
        t.translate_batch([ATZMON], [["Ω"]])[0].hypotheses[0][0] == "<unk>",
    ]
    yield "prefix longer than allowed", ["atzm"], lambda: out([ATZMON], [list("atzmon")], max_decoding_length=4)
    yield "no vocabulary map", ["atzmon"], lambda: out([ATZMON], use_vmap=True)
    yield "samples, best first", (5, True), lambda: (lambda r: (len(r.hypotheses), r.scores == sorted(r.scores, reverse=True)))(
        t.translate_batch([ATZMON], beam_size=1, sampling_topk=0, num_hypotheses=5, return_scores=True)[0]
    )
    yield "sampling at temperature 0", ["atzmon"], lambda: out([ATZMON], beam_size=1, sampling_topk=10, sampling_temperature=0)
    yield "greatest length below the least", "refused", lambda: refused(
        lambda: t.translate_batch([ATZMON], min_decoding_length=10, max_decoding_length=5)
    )
    yield "the same, later", "refused", lambda: refused(
        lambda: t.translate_batch([ATZMON], min_decoding_length=10, max_decoding_length=5, asynchronous=True)[0].result()
    )


def other_cases(t, ct, model):
    """Yields scores, streams, files and the module."""
    sources, targets = [pair[0] for pair in SCORED], [list(pair[1]) for pair in SCORED]
    expected = [pair[2] for pair in SCORED]

    def scored(results):
        return [near(result.log_probs, numbers) for result, numbers in zip(results, expected)] == [True] * 3

    def streamed(**options):
        steps = list(t.generate_tokens(ATZMON, return_log_prob=True, **options))
        return [step.token for step in steps], [step.is_last for step in steps].index(True), all(step.log_prob < 0 for step in steps)

    def stopped(after):
        told = []
        result = t.translate_batch([ATZMON], beam_size=1, callback=lambda step: told.append(step.token) or len(told) == after)[0]
        return "".join(told), "".join(result.hypotheses[0])

    def of_samples():
        tokens = collections.defaultdict(list)
        options = {"beam_size": 1, "sampling_topk": 20, "num_hypotheses": 3}
        t.translate_batch([ATZMON], callback=lambda step: tokens[step.hypothesis_id].append(step.token) and False, **options)
        return len(tokens)

    def of_prefixes():
        told = {}
        options = {"beam_size": 1, "max_batch_size": 2, "callback": lambda step: bool(told.setdefault(step.batch_id, step.token))}
        t.translate_batch([["ن"], ["ن"] * 2, ["ن"] * 3], [["a"], ["b"], ["c"]], **options)
        return [told[i] for i in range(3)]

    def old_way():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = t.translate_batch([ATZMON], return_scores=True)[0]
            return len(result), "".join(result[0]["tokens"]), result[0]["score"] < 0, "attention" in result[0]

    def files():
        with tempfile.TemporaryDirectory() as directory:
            path = {name: os.path.join(directory, name) for name in ("tokens", "text", "prefix", "out")}
            for name, between in (("tokens", " "), ("text", "")):
                with open(path[name], "w", encoding="utf-8") as file:
                    file.write(f"{between.join(ATZMON)}\n{between.join(ACHISON)}\n")
            with open(path["prefix"], "w", encoding="utf-8") as file:
                file.write("a t s\n\n")
            found = []
            join = {"source_tokenize_fn": list, "target_detokenize_fn": "".join}
            for name, options in (("tokens", {}), ("tokens", {"target_path": path["prefix"]}), ("text", join)):
                stats = t.translate_file(path[name], path["out"], **options)
                with open(path["out"], encoding="utf-8") as file:
                    found.append((file.read(), stats.num_examples, stats.num_tokens))
            return found

    def score_of_files():
        with tempfile.TemporaryDirectory() as directory:
            path = {name: os.path.join(directory, name) for name in ("source", "target", "out")}
            for name, sides in (("source", sources), ("target", targets)):
                with open(path[name], "w", encoding="utf-8") as file:
                    file.writelines(" ".join(side) + "\n" for side in sides)
            stats = t.score_file(path["source"], path["target"], path["out"], with_tokens_score=True)
            with open(path["out"], encoding="utf-8") as file:
                lines = [line.split(" ||| ") for line in file]
            numbers = [[float(number) for number in line[2].split()] for line in lines]
            means = [float(line[0]) for line in lines]
            return (
                stats.num_examples,
                stats.num_tokens,
                [line[1] for line in lines] == [" ".join([*target, "</s>"]) for target in targets],
                all(near(n, e) for n, e in zip(numbers, expected)) and near(means, [sum(e) / len(e) for e in expected]),
            )

    def reopened():
        again = ct.Translator(model, device="cpu", inter_threads=1, intra_threads=1)
        again.unload_model()
        told = [again.model_is_loaded, refused(lambda: again.translate_batch([ATZMON]), RuntimeError)]
        again.load_model()
        return [*told, again.model_is_loaded, texts(again.translate_batch([ATZMON]))]

    def elsewhere():
        with tempfile.TemporaryDirectory() as directory:
            shutil.copytree(model, os.path.join(directory, "测试", "model"))
            return texts(ct.Translator(os.path.join(directory, "测试", "model")).translate_batch([ATZMON]))

    def empty_directory():
        with tempfile.TemporaryDirectory() as directory:
            return ct.contains_model(model), ct.contains_model(directory)

    yield "scores", True, lambda: scored(t.score_batch(sources, targets))
    yield "scores later", True, lambda: scored([job.result() for job in t.score_batch(sources, targets, asynchronous=True)])
    yield "scores of an iterable", True, lambda: scored(list(t.score_iterable(iter(sources), iter(targets))))
    yield "scores of files", (3, 22, True, True), score_of_files
    yield "scored tokens", [*"atzmon", "</s>"], lambda: t.score_batch([ATZMON], [list("atzmon")])[0].tokens
    yield "scores of cut pairs", [*"atz", "</s>"], lambda: t.score_batch([ATZMON], [list("atzmon")], max_input_length=4)[0].tokens
    yield "scores behind an offset", 5, lambda: len(t.score_batch([ATZMON], [list("atzmon")], offset=2)[0].log_probs)
    yield "no pairs", [], lambda: t.score_batch([], [])
    yield "an empty pair", (["</s>"], [0]), lambda: (lambda r: (r.tokens, r.log_probs))(t.score_batch([[]], [[]])[0])
    yield "an empty source scored", ([*"atzmon", "</s>"], [0] * 7), lambda: (lambda r: (r.tokens, r.log_probs))(
        t.score_batch([[]], [list("atzmon")])[0]
    )
    yield "sides of different length", "refused", lambda: refused(lambda: next(t.score_iterable(iter([["a"]]), iter([]))))
    yield "stream", ([*"atzmon", "</s>"], 6, True), streamed
    yield "cut stream", (list("at"), 1, True), lambda: streamed(max_decoding_length=2)
    yield "callback", ("atz", "atz"), lambda: stopped(3)
    yield "callback with a beam", "refused", lambda: refused(lambda: t.translate_batch([ATZMON], callback=print))
    yield "callback of samples", 3, of_samples
    yield "callback of prefixes", ["a", "b", "c"], of_prefixes
    yield "later", (["atzmon", "achison"], True), lambda: (lambda jobs: (texts([job.result() for job in jobs]), jobs[0].done()))(
        t.translate_batch([ATZMON, ACHISON], asynchronous=True)
    )
    yield "iterable", ["atzmon", "achison"], lambda: texts(t.translate_iterable(iter([ATZMON, ACHISON]), return_scores=True))
    yield "iterable with prefixes", ["atsumon", "acheson"], lambda: texts(
        t.translate_iterable(iter([ATZMON, ACHISON]), iter([list("ats"), list("ache")]))
    )
    yield "too few prefixes", "refused", lambda: refused(lambda: next(t.translate_iterable(iter([ATZMON, ACHISON]), iter([list("a")]))))
    yield "empty iterable", [], lambda: list(t.translate_iterable(iter([])))
    yield "results as lists of dictionaries", (1, "atzmon", True, False), old_way
    yield "files", [
        ("a t z m o n\na c h i s o n\n", 2, 13),
        ("a t s u m o n\na c h i s o n\n", 2, 14),
        ("atzmon\nachison\n", 2, 13),
    ], files
    yield "no model", "refused", lambda: refused(lambda: ct.Translator("xxx"), RuntimeError)
    yield "path of other letters", ["atzmon"], elsewhere
    yield "contains_model", (True, False), empty_directory
    yield "unloaded and loaded again", [False, "refused", True, ["atzmon"]], reopened
    yield "properties", ("cpu", [0], True, 2, 0), lambda: (
        lambda r: (r.device, r.device_index, r.model_is_loaded, r.num_translators, r.num_queued_batches)
    )(ct.Translator(model, device="cpu", inter_threads=2))
    yield "compute types", ["int8_float32", "int8_float32", "float32"], lambda: [
        ct.Translator(model, device="cpu", compute_type=kind).compute_type
        for kind in ("int8", {"cuda": "float16", "cpu": "int8"}, "float32")
    ]
    yield "no such compute type", "refused", lambda: refused(lambda: ct.Translator(model, compute_type="float64"))
    yield "no such device index", ["refused"] * 2, lambda: [
        refused(lambda: ct.Translator(model, device="cpu", device_index=index)) for index in ([], [0, 1])
    ]
    yield "supported compute types", True, lambda: {"float32", "int8", "int8_float32"} <= set(ct.get_supported_compute_types("cpu"))
    yield "number of cards", True, lambda: ct.get_cuda_device_count() >= 0
    yield "seed", True, lambda: (lambda first: (ct.set_random_seed(4), first == drawn(t))[1])((ct.set_random_seed(4), drawn(t))[1])
    yield "model in memory", "refused", lambda: refused(lambda: ct.Translator("x", files={"model.bin": b""}))


def drawn(t):
    return t.translate_batch([ATZMON], beam_size=1, sampling_topk=0, num_hypotheses=4)[0].hypotheses


def cases(ct, model, **options):
    """Yields (name, expected, result or exception) of every case."""
    t = ct.Translator(model, **options)
    calls = [(f"{name}, {'greedy' if beam == 1 else f'beam {beam}'}", e, f) for beam in (1, 4) for name, e, f in search_cases(t, beam)]
    for name, expected, call in [*calls, *batch_cases(t), *other_cases(t, ct, model)]:
        try:
            yield name, expected, call()
        except Exception as error:
            yield name, expected, error


def verdict(expected, result):
    if result == expected:
        return "same"
    return "refused" if isinstance(result, ValueError) else "DIFFERENT"


def main():
    ct = importlib.import_module(sys.argv[2] if len(sys.argv) > 2 else "starling")
    counts = collections.Counter()
    for name, expected, result in cases(ct, sys.argv[1], compute_type="float32"):
        found = verdict(expected, result)
        counts[found] += 1
        shown = f"{type(result).__name__}: {result}" if isinstance(result, Exception) else str(result)
        print(f"{found:9} {name}: {shown[:160]}" + (f" (expected: {expected})" if found == "DIFFERENT" else ""))
    print(f"{sum(counts.values())} cases: " + ", ".join(f"{n} {each}" for each, n in counts.most_common()))
    return int(counts["DIFFERENT"] > 0)


if __name__ == "__main__":
    sys.exit(main())
