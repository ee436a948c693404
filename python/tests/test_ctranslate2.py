"""The calls of CTranslate2's module: what its own tests expect (bench/peers/ct2_cases.py), and what Starling makes of its settings."""

import importlib.util
import os
import tempfile
import unittest
from pathlib import Path

import starling

ROOT = Path(__file__).resolve().parents[2]
MODEL = str(ROOT / "tests" / "fixtures" / "ct2" / "v1-aren-transliteration-i16")
SOURCE = list("آتزمون")


def peer_cases():
    spec = importlib.util.spec_from_file_location("ct2_cases", ROOT / "bench" / "peers" / "ct2_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CTranslate2Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.TemporaryDirectory()
        cls.before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = cls.cache.name
        cls.translator = starling.Translator(MODEL, compute_type="float32", intra_threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.translator.close()
        os.environ.pop("XDG_CACHE_HOME") if cls.before is None else os.environ.update(XDG_CACHE_HOME=cls.before)
        cls.cache.cleanup()

    def test_what_its_own_tests_expect(self):
        peer, count = peer_cases(), 0
        peer.TOLERANCE = 0.02  # the weights are rounded to 16 bits
        for name, expected, result in peer.cases(starling, MODEL, compute_type="float32", intra_threads=1):
            with self.subTest(name):
                self.assertEqual(result, expected)
            count += 1
        self.assertGreater(count, 95)

    def test_threads_are_the_product_of_both_kinds(self):
        for options, threads in (({"intra_threads": 2}, 2), ({"inter_threads": 3, "intra_threads": 1}, 3), ({"threads": 2}, 2)):
            with starling.Translator(model_path=MODEL, device="cpu", **options) as translator:
                self.assertIn(f"{threads} thread", translator.machine)

    def test_what_has_no_counterpart_is_refused_by_a_sentence(self):
        for options, says in (
            ({"return_logits_vocab": True}, "return_logits_vocab: .* leave it out"),
            ({"batch_type": "sentences"}, "neither 'examples' nor 'tokens'"),
            ({"sampling_topk": 5, "return_attention": True}, "sampling works without"),
            ({"beam_size": 1, "sampling_topp": 0.0, "sampling_topk": 0}, "top_p"),
        ):
            with self.assertRaisesRegex(ValueError, says):
                self.translator.translate_batch([SOURCE], **options)
        with self.assertRaisesRegex(TypeError, "give the tokens themselves"):
            self.translator.translate_batch([SOURCE], end_token=[2])
        with self.assertRaisesRegex(TypeError, "element 0 is a string, not a list of tokens"):
            self.translator.translate_batch(["آتزمون"])
        with self.assertRaisesRegex(ValueError, "tensor_parallel"):
            starling.Translator(MODEL, tensor_parallel=True)
        with self.assertRaisesRegex(AttributeError, "language models are not supported"):
            starling.Generator

    def test_values_of_another_type_are_named(self):
        for options, message in (
            ({"beam_size": "4"}, r"beam_size cannot be '4' \(str\); give a whole number"),
            ({"beam_size": 2.5}, r"beam_size cannot be 2.5 \(float\); give a whole number"),
            ({"length_penalty": None}, r"length_penalty cannot be None \(NoneType\); give a number"),
            ({"return_scores": "yes"}, "return_scores cannot be 'yes'"),
            ({"target_prefix": [5]}, "prefix 0 is of type int, not a list of tokens"),
        ):
            with self.assertRaisesRegex(TypeError, message):
                self.translator.translate_batch([SOURCE], **options)
        self.translator.translate_batch([SOURCE], length_penalty=1, return_scores=1, beam_size=True)

    def test_what_a_callback_raises_is_raised(self):
        def fail(step):
            raise LookupError(step.token)

        for options in ({}, {"sampling_topk": 5}):
            with self.assertRaises(LookupError):
                self.translator.translate_batch([SOURCE], beam_size=1, callback=fail, **options)
        self.assertEqual(len(self.translator.translate_batch([SOURCE])), 1)

    def test_a_stream_may_be_left(self):
        stream = self.translator.generate_tokens(SOURCE)
        self.assertEqual(next(stream).token, "a")
        stream.close()
        self.assertEqual("".join(step.token for step in self.translator.generate_tokens(SOURCE)), "atzmon</s>")
        drawn = [step.token for step in self.translator.generate_tokens(SOURCE, sampling_topk=5)]
        self.assertGreater(len(drawn), 1)

    def test_options_of_translate(self):
        text = " ".join(SOURCE)
        told = []
        translation = self.translator.translate(text, beam=1, on_token=lambda step: told.append((step.token, step.text)))
        self.assertEqual(told[-1], ("</s>", translation.text))
        self.assertEqual([token for token, _ in told[:-1]], translation.tokens)
        self.assertEqual(self.translator.translate(text, beam=1, on_token=lambda step: step.token != "z").tokens, list("atz"))
        self.assertEqual(self.translator.translate(text, end_tokens=["m"]).hypotheses[0].end, "m")
        self.assertEqual(self.translator.translate(text, max_source_tokens=3).tokens, list("atz"))
        draws = [self.translator.translate(text, top_k=3, temperature=2.0, seed=seed, n_best=2) for seed in (1, 1, 2)]
        self.assertEqual([h.tokens for h in draws[0].hypotheses], [h.tokens for h in draws[1].hypotheses])
        self.assertNotEqual([h.tokens for h in draws[0].hypotheses], [h.tokens for h in draws[2].hypotheses])
        rows = self.translator.translate(text, attention=True).hypotheses[0].attention
        self.assertEqual((len(rows), len(rows[0])), (7, 6))
        self.assertAlmostEqual(sum(rows[0]), 1, places=4)
        with self.assertRaisesRegex(ValueError, "set beam to 1"):
            self.translator.translate(text, beam=2, on_token=print)

    def test_arrays_of_tokens(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        array = numpy.array([SOURCE, SOURCE])
        self.assertEqual(self.translator.translate_batch(array), self.translator.translate_batch([SOURCE, SOURCE]))
        rows = self.translator.translate_batch(array, return_attention=True)[0].attention
        self.assertEqual(numpy.asarray(rows).shape, (1, 6, 6))


if __name__ == "__main__":
    unittest.main()
