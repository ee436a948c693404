"""The Python module against what the program prints."""

import ast
import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import starling

MODELS = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "models"
PROGRAM = os.environ.get("STARLING_BINARY", "starling")
SOURCES = (MODELS / "source.en").read_text().splitlines()


def printed(model, *options):
    command = [PROGRAM, "translate", "--quiet", "-m", MODELS / model / "model", "--precision", "f32"]
    command += ["--input", MODELS / "source.en", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


class TranslatorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.translator = starling.Translator(MODELS / "pre" / "model", threads=2, precision="f32")

    @classmethod
    def tearDownClass(cls):
        cls.translator.close()

    def test_translates_as_the_program_does(self):
        self.assertEqual([t.text for t in self.translator.translate(SOURCES)], printed("pre"))
        self.assertEqual([t.text for t in self.translator.translate(SOURCES, beam=2, length_penalty=1.5)],
                         printed("pre", "--beam", "2", "--length-penalty", "1.5"))
        self.assertEqual(str(self.translator.translate(SOURCES[0])), printed("pre")[0])
        self.assertEqual([t.text for t in self.translator.translate_iterable(iter(SOURCES * 3), window=4)], printed("pre") * 3)
        self.assertEqual(self.translator.translate([]), [])

    def test_lists(self):
        lines = [f"{i} ||| {h.text}" for i, t in enumerate(self.translator.translate(SOURCES, n_best=3)) for h in t.hypotheses]
        self.assertEqual(lines, [" ||| ".join(line.split(" ||| ")[:2]) for line in printed("pre", "--n-best", "3")])

    def test_alignments(self):
        translation = self.translator.translate(SOURCES[0], alignment=True)
        text = " ".join(f"{s}-{t}" for s, t in translation.alignment)
        self.assertEqual(f"{translation.text} ||| {text}", printed("pre", "--alignment", "pieces")[0])

    def test_glossaries(self):
        terms = "man\tFrauen\tFrau\ndog\tHund\n"
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write(terms)
            file.flush()
            expected = printed("pre", "--glossary", file.name)
        translations = [t.text for t in self.translator.translate(SOURCES, glossary=terms)]
        self.assertEqual(translations, expected)
        self.assertNotEqual(translations, printed("pre"))
        with self.assertRaisesRegex(ValueError, "glossary:1: a line has a term, a tab"):
            self.translator.translate(SOURCES, glossary="dog Hund")
        with self.assertRaisesRegex(ValueError, "glossary: it cannot be combined with sampling"):
            self.translator.translate(SOURCES, glossary=terms, sample=True)

    def test_confidence(self):
        with tempfile.TemporaryDirectory() as directory:
            model = os.path.join(directory, "model")
            shutil.copytree(MODELS / "pre" / "model", model)
            with self.assertRaisesRegex(starling.UsageError, "has no calibration, which confidence needs"):
                self.translator.translate("A dog", confidence=True)
            who = ("A dog", "The cat", "A man", "A boy")
            sources = [f"{w} runs {'abcdefgh'[i % 8] * (i // 8 + 1)}." for w in who for i in range(64)]
            own = [t.text for t in self.translator.translate(sources)]
            for name, lines in (("source", sources), ("target", [line if i % 4 > 1 else "wrong" for i, line in enumerate(own)])):
                Path(directory, name).write_text("".join(line + "\n" for line in lines))
            arguments = ["--source", os.path.join(directory, "source"), "--target", os.path.join(directory, "target")]
            subprocess.run([PROGRAM, "calibrate", "-m", model, "--precision", "f32", *arguments], check=True, capture_output=True)
            with starling.Translator(model, threads=1, precision="f32") as translator:
                self.assertIsNone(translator.translate(SOURCES[0]).confidence)
                self.assertEqual(translator.translate(SOURCES[0]).words, [])
                found = translator.translate(SOURCES[0], confidence=True)
            words = " ".join(f"{value:.4f}" for _, value in found.words)
            line = f"{found.text} ||| Confidence= {found.confidence:.4f} WordConfidence= {words}"
            command = [PROGRAM, "translate", "--quiet", "-m", model, "--precision", "f32", "--confidence"]
            command += ["--input", MODELS / "source.en"]
            expected = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            self.assertEqual(line, expected.splitlines()[0])
            self.assertEqual(" ".join(text for text, _ in found.words), found.text)

    def test_documents(self):
        text = f"{SOURCES[0]}\n\n{SOURCES[1]}\n"
        whole = [self.translator.translate(SOURCES[i]).text for i in (0, 1)]
        self.assertEqual(self.translator.translate(text, document=True), f"{whole[0]}\n\n{whole[1]}\n")
        self.assertTrue(self.translator.translate(f"<b>{SOURCES[0]}</b>", html=True).startswith("<b>"))
        self.assertEqual(len(self.translator.translate(["a", "b"], html=True)), 2)

    def test_tokens_with_the_names_of_ctranslate2(self):
        tokens = [self.translator.tokenize(line) for line in SOURCES]
        results = self.translator.translate_batch(tokens, beam_size=4, num_hypotheses=2, return_scores=True, max_decoding_length=20)
        expected = self.translator.translate(SOURCES, beam=4, n_best=2, length_penalty=1, length_penalty_form="power", allow_unknown=True,
                                             max_length_factor=0, max_length_offset=20)
        for result, translation in zip(results, expected):
            self.assertEqual(result.hypotheses, [h.tokens for h in translation.hypotheses])
            self.assertEqual(result.scores, [h.score for h in translation.hypotheses])
            self.assertEqual(self.translator.detokenize(result.hypotheses[0]), translation.text)
        self.assertEqual(self.translator.translate_batch(tokens[:1])[0].scores, [])
        jobs = self.translator.translate_batch(tokens, asynchronous=True)
        self.assertEqual([job.result() for job in jobs], self.translator.translate_batch(tokens))
        self.assertTrue(jobs[0].done())

    def test_prefixes_of_each_sentence(self):
        tokens = [self.translator.tokenize(line) for line in SOURCES]
        first = self.translator.translate_batch(tokens, beam_size=1)[0].hypotheses[0][:2]
        results = self.translator.translate_batch(tokens, target_prefix=[first, None] + [first] * (len(tokens) - 2), beam_size=1)
        free = self.translator.translate_batch(tokens, beam_size=1)[0].hypotheses[0]
        self.assertEqual(results[0].hypotheses[0][: len(free)], free, "it begins so by itself, too")
        self.assertEqual(results[1], self.translator.translate_batch(tokens, beam_size=1)[1])
        with self.assertRaises(starling.UsageError):
            self.translator.translate_batch(tokens, target_prefix=[first])

    def test_scores(self):
        targets = [t.text for t in self.translator.translate(SOURCES)]
        scores = self.translator.score(SOURCES, targets)
        target_tokens = [self.translator.tokenize_target(target) for target in targets]
        batch = self.translator.score_batch([self.translator.tokenize(line) for line in SOURCES], target_tokens)
        for score, result in zip(scores, batch):
            self.assertAlmostEqual(score.log_probability, sum(result.log_probs), places=9)
            self.assertEqual(result.tokens[-1], "</s>")
        self.assertAlmostEqual(self.translator.score(SOURCES[0], targets[0]).log_probability, scores[0].log_probability, places=5)

    def test_eight_threads_get_what_one_gets(self):
        expected = [t.text for t in self.translator.translate(SOURCES)]
        results = {}

        def work(number):
            results[number] = [self.translator.translate(line).text for line in SOURCES]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([results[number] for number in range(8)], [expected] * 8)

    def test_other_threads_run_meanwhile(self):
        counted = [0]
        stop = threading.Event()

        def count():
            while not stop.wait(0.001):
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        begin = time.monotonic()
        while time.monotonic() < begin + 0.3:
            self.translator.translate(SOURCES * 20)
        stop.set()
        thread.join()
        self.assertGreater(counted[0], 10)

    def test_control_c_ends_a_translation(self):
        def interrupt():
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

        own = starling.Translator(MODELS / "pre" / "model", threads=1)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                own.translate(SOURCES * 200)
        thread.join()

    def test_errors(self):
        with self.assertRaisesRegex(starling.UsageError, "/nowhere"):
            starling.Translator("/nowhere")
        with self.assertRaisesRegex(TypeError, "did you mean 'n_best'"):
            self.translator.translate("x", nbest=2)
        with self.assertRaisesRegex(TypeError, "beam cannot be 'four'; give a whole number"):
            self.translator.translate("x", beam="four")
        with self.assertRaisesRegex(ValueError, "beam: 0 is not allowed"):
            self.translator.translate("x", beam=0)
        with self.assertRaisesRegex(starling.UsageError, "1 sources and 2 targets"):
            self.translator.score(["x"], ["a", "b"])
        closed = starling.Translator(MODELS / "pre" / "model", threads=1)
        closed.close()
        with self.assertRaisesRegex(starling.UsageError, "closed"):
            closed.translate("x")

    def test_models(self):
        info = starling.describe_model(str(MODELS / "gnmt" / "model"))
        self.assertEqual((info.architecture, info.quantized), ("gnmt", False))
        self.assertIn("2 threads", self.translator.machine)


class CTranslate2Test(unittest.TestCase):
    """The example of CTranslate2's README with the import exchanged, against what CTranslate2 itself has printed."""

    def expected(self, directory):
        lists = []
        for block in (directory / "nbest-f32.txt").read_text().strip().split("\n\n"):
            lists.append([line.split("\t") for line in block.splitlines()])
        return lists

    def test_its_directories_give_its_translations(self):
        import starling as ctranslate2

        tokens = [line.split() for line in (MODELS.parent / "ct2" / "input.txt").read_text().splitlines()]
        for name in ("v1-aren-transliteration-i16", "v2-aren-transliteration-i8"):
            directory = MODELS.parent / "ct2" / name
            with tempfile.TemporaryDirectory() as temporary:
                imported, exported = Path(temporary) / "imported", Path(temporary) / "exported"
                subprocess.run([PROGRAM, "import", directory, "-o", imported], check=True, capture_output=True)
                ctranslate2.export_model(str(imported), "ctranslate2", str(exported), False)
                os.environ["XDG_CACHE_HOME"] = temporary
                for path in (directory, exported):
                    translator = ctranslate2.Translator(str(path), device="cpu", precision="f32")
                    results = translator.translate_batch(tokens, beam_size=4, num_hypotheses=4, length_penalty=0, return_scores=True)
                    for result, lines in zip(results, self.expected(directory)):
                        self.assertEqual([" ".join(hypothesis) for hypothesis in result.hypotheses], [line[1] for line in lines])
                        for score, line in zip(result.scores, lines):
                            self.assertAlmostEqual(score, float(line[0]), places=3)


class TypesTest(unittest.TestCase):
    def test_the_stub_has_the_names_of_the_module(self):
        stub = Path(starling.__file__).with_name("_starling.pyi").read_text()
        declared, module = {}, starling._starling
        for node in ast.parse(stub).body:
            if isinstance(node, ast.ClassDef):
                declared[node.name] = {f.name for f in node.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("__")}
            elif isinstance(node, ast.FunctionDef):
                declared[node.name] = None
        names = {name for name in dir(module) if not name.startswith("__")}
        self.assertEqual(set(declared), names)
        for name, members in declared.items():
            entity = getattr(module, name)
            if members is None:
                self.assertTrue(callable(entity))
            elif not issubclass(entity, Exception):
                self.assertEqual(members, {member for member in vars(entity) if not member.startswith("_")}, name)

    def test_an_export_has_the_arguments_of_the_stub(self):
        with tempfile.TemporaryDirectory() as directory:
            output = os.path.join(directory, "marian")
            starling.export_model(str(MODELS / "post" / "model"), format="ctranslate2", output=output)
            self.assertTrue(os.path.exists(os.path.join(output, "model.bin")))


class EvaluateTest(unittest.TestCase):
    def test_scores_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as directory:
            hypotheses = Path(directory) / "hypotheses"
            hypotheses.write_text("".join(f"{line} x\n" for line in SOURCES))
            for metric in ("bleu", "chrf", "ter"):
                command = [PROGRAM, "evaluate", "--hypotheses", hypotheses, "--references", MODELS / "source.en", "--metrics", metric]
                text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                score = starling.evaluate(metric, [f"{line} x" for line in SOURCES], SOURCES)
                self.assertIn(score.signature, text)
                self.assertIn(f"= {float(score):.2f}", text)


class TrainTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name)
        subprocess.run([PROGRAM, "demo-corpus", "--output", self.path / "text"], check=True, capture_output=True)
        self.config = {
            "data": {"train": [{"source": self.path / "text" / "train.en", "target": self.path / "text" / "train.de"}]},
            "vocab": {"size": 500, "sample-lines": 500},
            "model": {"width": 16, "feed-forward": 32, "heads": 2, "encoder-layers": 1, "decoder-layers": 1},
            "train": {"output": self.path / "run", "batch-tokens": 200, "max-steps": 6},
            "log": {"every": 1},
        }

    def tearDown(self):
        self.directory.cleanup()

    def test_a_callback_that_fails_ends_the_run_which_goes_on_later(self):
        def fail(event):
            if event["type"] == "report" and event["step"] >= 2:
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            starling.train(self.config, on_event=fail)
        events = []
        result = starling.train(self.config, on_event=events.append, on_log=io.StringIO().write)
        self.assertTrue(result.complete)
        self.assertEqual(starling.describe_model(result.directory).step, 6)
        steps = [event["step"] for event in events if event["type"] == "report"]
        self.assertEqual(steps[-1], 6)
        self.assertGreater(steps[0], 2)
        self.assertIsInstance(starling.Translator(result.directory, threads=1).translate("a dog").text, str)

    def test_the_examples_of_the_guide_run(self):
        guide = Path(__file__).resolve().parents[2] / "docs" / "guides" / "python.md"
        blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
        self.assertEqual(len(blocks), 3)
        (self.path / "run").symlink_to(MODELS / "post" / "model")
        starling.export_model(str(MODELS / "post" / "model"), "ctranslate2", str(self.path / "ende_ctranslate2"))
        self.config["train"]["output"] = "trained"
        lines = [f"{section}: {json.dumps(keys, default=str)}" for section, keys in self.config.items()]
        (self.path / "my.yml").write_text("\n".join(lines))
        names = {"starling": starling, "hypotheses": ["a dog"], "references": ["a dog"]}
        output, before = io.StringIO(), os.getcwd()
        cache = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(self.path / "cache")
        try:
            os.chdir(self.path)
            with contextlib.redirect_stdout(output):
                for block in blocks:
                    exec(block.replace("1000", "3"), names)  # updates
        finally:
            os.chdir(before)
            os.environ.pop("XDG_CACHE_HOME") if cache is None else os.environ.update(XDG_CACHE_HOME=cache)
        self.assertEqual(starling.describe_model(str(self.path / "trained")).step, 3)
        self.assertIn("'type': 'stop'", output.getvalue())

    def test_mistakes_are_named(self):
        with self.assertRaisesRegex(starling.UsageError, "learning-rat"):
            starling.train(self.config, train={"learning-rat": 1})


if __name__ == "__main__":
    unittest.main()
