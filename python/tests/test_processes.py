"""The Python module in processes that fork, end, are interrupted, or pass on what is not text."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import starling

MODEL = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "models" / "pre" / "model"
SENTENCE = "Two men walk through the park today. "


def run(program, *arguments):
    """Runs a program of Python; returns its status and what it printed."""
    command = [sys.executable, "-c", program, str(MODEL), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


class ForkTest(unittest.TestCase):
    def test_a_child_is_told_to_open_its_own(self):
        program = """if True:
            import os, starling, sys, time
            translator = starling.Translator(sys.argv[1], threads=2)
            translator.score(["a"] * 20, ["b"] * 20)
            scores = [score.log_probability for score in translator.score(["a"], ["b"])]
            time.sleep(0.2)  # its threads wait
            child = os.fork()
            if child == 0:
                calls = [lambda t: t.translate("a"), lambda t: t.translate("a", document=True), lambda t: t.translate_batch([["a"]]),
                         lambda t: list(t.translate_iterable(["a"])), lambda t: t.score("a", "b"), lambda t: t.tokenize("a"),
                         lambda t: t.detokenize(["a"]), lambda t: t.machine, lambda t: t.model]
                for call in calls:
                    try:
                        print("done", call(translator))
                    except starling.UsageError as error:
                        assert "before the process forked; open one here" in str(error), error
                own = starling.Translator(sys.argv[1], threads=2)
                assert own.translate("a").text
                assert [score.log_probability for score in own.score(["a"], ["b"])] == scores
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
        self.assertEqual(run(program), (0, "7\n"))


class EndTest(unittest.TestCase):
    def test_daemon_threads_may_translate_at_the_end(self):
        program = """if True:
            import starling, sys, threading, time
            translator = starling.Translator(sys.argv[1], threads=1)
            def work():
                while True:
                    translator.translate(["Two men walk through the park."] * 500)
                    translator.score(["Two men walk."] * 500, ["ein Mann"] * 500)
            for _ in range(3):
                threading.Thread(target=work, daemon=True).start()
            jobs = translator.translate_batch([list("twomenwalk")] * 100000, asynchronous=True)
            time.sleep(0.3)
        """
        begin = time.monotonic()
        self.assertEqual(run(program), (0, ""))
        self.assertLess(time.monotonic() - begin, 20)

    def test_subinterpreters_are_refused(self):
        program = """if True:
            import sys, _xxsubinterpreters as interpreters
            if sys.argv[2] == "after":
                import starling
            try:
                interpreters.run_string(interpreters.create(), "import sys; sys.path = %r; import starling" % (sys.path,))
            except interpreters.RunFailedError as error:
                print(error)
        """
        if sys.version_info[:2] > (3, 12):
            self.skipTest("the module of subinterpreters has another name")
        for when in ("before", "after"):
            status, text = run(program, when)
            self.assertEqual(status, 0)
            self.assertIn("import it in the main interpreter", text)


class InterruptTest(unittest.TestCase):
    def test_control_c_is_heard_everywhere_and_gives_up_the_work(self):
        translator = starling.Translator(MODEL, threads=1)
        calls = {
            "translate": lambda: translator.translate([SENTENCE] * 20000),
            "document": lambda: translator.translate(SENTENCE * 20000, document=True),
            "score": lambda: translator.score([SENTENCE] * 50000, [SENTENCE] * 50000),
            "tokenize": lambda: translator.tokenize(SENTENCE * 400000),
            "translate_batch": lambda: translator.translate_batch([list("twomenwalk")] * 20000),
            "translate_iterable": lambda: list(translator.translate_iterable([SENTENCE] * 20000)),
        }
        for name, call in calls.items():
            with self.subTest(name):
                timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
                timer.start()
                begin = time.monotonic()
                with self.assertRaises(KeyboardInterrupt):
                    call()
                self.assertLess(time.monotonic() - begin, 10, "it takes a minute or more; the machine may have other work")
                translator.translate("a")
                self.assertLess(time.monotonic() - begin, 15)
                timer.join()

    def test_what_is_under_way_can_be_given_up(self):
        translator = starling.Translator(MODEL, threads=1)
        jobs = translator.translate_batch([list("twomenwalk")] * 20000, asynchronous=True)
        translator.cancel()
        with self.assertRaisesRegex(starling.StarlingError, "cancelled"):
            jobs[-1].result()

    def test_what_a_log_raises_is_raised(self):
        import shutil
        import tempfile

        def log(line):
            raise LookupError(line)

        with tempfile.TemporaryDirectory() as directory:
            foreign = os.path.join(directory, "ct2")
            starling.export_model(str(MODEL.parents[1] / "post" / "model"), "ctranslate2", foreign)
            environment = dict(os.environ)
            os.environ["XDG_CACHE_HOME"] = os.path.join(directory, "cache")
            try:
                with self.assertRaisesRegex(LookupError, "import"):
                    starling.Translator(foreign, threads=1, log=log)
            finally:
                os.environ.clear()
                os.environ.update(environment)
            shutil.rmtree(foreign)


class ElementTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.translator = starling.Translator(MODEL, threads=1)

    def test_an_element_that_is_no_text_is_named(self):
        def refused(kind, message, *sentences):
            with self.assertRaises(kind) as raised:
                self.translator.translate(list(sentences) * 1000)
            self.assertEqual(str(raised.exception), message)

        refused(TypeError, "element 1 is nan (float), not a string", "a", float("nan"))
        refused(TypeError, "element 0 is None, not a string", None)
        refused(TypeError, "element 0 is a value of type list, not a string", ["a"] * 100000)
        refused(TypeError, "element 2 is 5 (int), not a string", "a", b"b", 5)
        refused(ValueError, "element 0 is '\\ud800', which has a surrogate and so is not Unicode text", "\ud800")
        refused(starling.DataError, "sentence 1: byte 1 (0xff) does not belong to UTF-8; convert the text", "a", b"a\xff")
        with self.assertRaisesRegex(TypeError, "^target 0, token 1 is 3.5 .float., not a string$"):
            self.translator.score_batch([["a"]], [["b", 3.5]])
        with self.assertRaisesRegex(TypeError, "^the argument is a value of type list, not a string$"):
            self.translator.tokenize(["a"] * 100000)

    def test_a_nul_does_not_end_a_message(self):
        for options in ({"target_language": "en\0x"}, {"target_prefix": "\0"}, {"suppress": ["a\0"]}):
            with self.assertRaisesRegex(starling.UsageError, "NUL character; leave it out"):
                self.translator.translate("a", **options)

    def test_numbers_of_threads_are_checked(self):
        for threads in (-1, 4097, 2**80):
            with self.assertRaisesRegex(starling.UsageError, "between 0 and 4096"):
                starling.Translator(MODEL, threads=threads)
        with self.assertRaisesRegex(TypeError, "threads cannot be 'two'"):
            starling.Translator(MODEL, threads="two")

    def test_arrays_are_lists(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        expected = [t.text for t in self.translator.translate(["a", "two men"], beam=3)]
        array = numpy.array(["a", "two men"])
        self.assertEqual([t.text for t in self.translator.translate(array, beam=numpy.int64(3))], expected)
        self.assertEqual([t.text for t in self.translator.translate(array.astype(object), beam=3)], expected)
        self.assertEqual([s.log_probability for s in self.translator.score(array, array)],
                         [s.log_probability for s in self.translator.score(list(array), list(array))])


if __name__ == "__main__":
    unittest.main()
