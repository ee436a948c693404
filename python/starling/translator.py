"""Translating and scoring."""

from __future__ import annotations

import itertools
import os
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, Sequence, Union, overload

from starling import _starling
from starling.results import TranslationResult
from starling.settings import compute_type_of, device_of, precision_of, refuse, threads_of
from starling.token_batches import Tokens
from starling.token_calls import TokenCalls, _windows

class Translator(TokenCalls):
    """A model that translates. Any number of threads may use one; their sentences are computed together.

    model: a run directory, a checkpoint, a model directory, or a model of another program (Marian, OPUS-MT, CTranslate2, Argos, Hugging
    Face, Firefox), which is imported once into the user's cache.
    device: auto (a card if there is one, else the processor), cpu, cuda, cuda:1.
    threads: each translates sentences of its own; 0 = one per core.
    precision: auto, f32, bf16, int8.
    max_source_tokens: longer sources are cut there, and their results say so (truncated).
    log: called with a line about what takes long at the start, such as importing a model.

    The other arguments are CTranslate2's: model_path is model, compute_type the precision, and inter_threads times intra_threads the
    threads. max_queued_batches and flash_attention mean nothing here.
    """

    def __init__(
        self,
        model: Union[str, "os.PathLike[str]", None] = None,
        device: str = "auto",
        threads: int = 0,
        *,
        precision: str = "",
        max_source_tokens: int = 1000,
        rows: int = 256,
        log: Optional[Callable[[str], Any]] = None,
        model_path: Union[str, "os.PathLike[str]", None] = None,
        device_index: Union[int, Sequence[int]] = 0,
        compute_type: Union[str, Mapping[str, str], None] = None,
        inter_threads: int = 1,
        intra_threads: int = 0,
        max_queued_batches: int = 0,
        flash_attention: bool = False,
        tensor_parallel: bool = False,
        files: Any = None,
    ):
        refuse(
            (
                ("files", files is not None, "models in memory are not supported; write them to a directory, and name that"),
                ("tensor_parallel", tensor_parallel, "a model is on several cards only where mpirun starts the program; leave it out"),
            )
        )
        given = model_path if model is None else model
        if given is None:
            raise TypeError("no model was named")
        device = device_of(device, device_index)
        precision = precision or precision_of(compute_type, device, os.fspath(given))
        threads = threads_of(threads, inter_threads, intra_threads)
        self._arguments = (os.fspath(given), device, precision, threads, max_source_tokens, rows, log)
        self._inter_threads = inter_threads
        self._unloaded = False
        self._translator: Optional[_starling.Translator] = _starling.Translator(*self._arguments)

    @property
    def _open(self) -> _starling.Translator:
        translator = self._translator
        if translator is None:
            if self._unloaded:
                raise _starling.UsageError("the model of this translator was unloaded; call load_model()")
            raise _starling.UsageError("the translator is closed; open another one")
        return translator

    @property
    def model(self) -> _starling.ModelInfo:
        """What the model is."""
        return self._open.model

    @property
    def machine(self) -> str:
        """What computes."""
        return self._open.machine

    def close(self) -> None:
        """Frees the model, after what is under way. The translator cannot be used afterwards."""
        self._translator = None

    def unload_model(self, to_cpu: bool = False) -> None:
        """Frees the model until load_model(). Nothing happens while translations are under way, or if it is to stay on the processor."""
        translator = self._open
        if translator.under_way == 0 and not (to_cpu and translator.device == "cpu"):
            self._unloaded, self._translator = True, None

    def load_model(self, keep_cache: bool = False) -> None:
        """Opens the model again after unload_model()."""
        if self._unloaded:
            self._translator = _starling.Translator(*self._arguments)
            self._unloaded = False

    @property
    def model_is_loaded(self) -> bool:
        return self._translator is not None

    @property
    def device(self) -> str:
        """cpu or cuda."""
        return self._open.device.split(":")[0]

    @property
    def device_index(self) -> List[int]:
        index = self._open.device.partition(":")[2]
        return [int(index or 0)]

    @property
    def compute_type(self) -> str:
        """The precision, by CTranslate2's name."""
        return compute_type_of(self._open.precision, self._open.device)

    @property
    def num_translators(self) -> int:
        return self._inter_threads

    @property
    def num_active_batches(self) -> int:
        """Requests that are under way; all of them are computed together, so that none waits for others."""
        return self._open.under_way

    @property
    def num_queued_batches(self) -> int:
        return 0

    @property
    def tensor_parallel(self) -> bool:
        return False

    def cancel(self) -> None:
        """Gives up everything that is under way; calls that wait for it raise StarlingError."""
        self._open.cancel()

    def __enter__(self) -> "Translator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @overload
    def translate(self, text: str, *, html: bool = ..., document: bool = ..., **options: Any) -> _starling.Translation: ...

    @overload
    def translate(self, text: Sequence[str], *, html: bool = ..., document: bool = ..., **options: Any) -> List[_starling.Translation]: ...

    def translate(self, text, *, html=False, document=False, **options):
        """Translates a sentence, or a list of sentences.

        html: each text is an HTML document, whose markup is kept. document: each text has any number of sentences and lines, which are
        kept. Both return strings.

        Options, each of which is the model's own setting if it is not given: beam, n_best (1), length_penalty, length_penalty_form (gnmt or
        power), coverage_penalty, prune_threshold, max_length_factor, max_length_offset, target_language (of a model that translates into
        several), source_prefix and target_prefix (pieces, with spaces between them), suppress (a list of pieces or sequences of them),
        no_repeat_ngram, allow_unknown, alignment (True: also find pairs of source and target tokens), confidence (True: how probably the
        translation and its words are right; needs starling calibrate), glossary (lines of a term, a tab and its translation), min_length,
        patience, repetition_penalty, word_penalty, prefix_bias (0: the target prefix is forced; else how much of the probability its tokens
        get), end_tokens (pieces that end a translation in place of the end of sentence), max_source_tokens, attention (True: of each
        hypothesis, by target token), sample (True: draw n_best translations, with top_k, top_p, temperature, seed), alternatives (True: for
        what follows the target prefix; min_alternative_probability), on_token (with beam=1: called with each Step; ends the translation by
        returning False).
        """
        _check(options)
        if html or document:
            if isinstance(text, (str, bytes)):
                return self._open.translate_document(text, html, options)
            return [self._open.translate_document(each, html, options) for each in text]
        if isinstance(text, (str, bytes)):
            return self._open.translate([text], options)[0]
        return self._open.translate(text, options)

    def translate_iterable(
        self,
        source: Iterable[Union[str, Tokens]],
        target_prefix: Optional[Iterable[Optional[Tokens]]] = None,
        max_batch_size: int = 64,
        batch_type: str = "examples",
        *,
        window: int = 0,
        **options: Any,
    ) -> Iterator[Union[_starling.Translation, TranslationResult]]:
        """Translates lines of any number, such as those of an open file, and yields the translations in their order; or sentences of tokens
        with the options of translate_batch. At most three times `window` (16 * max_batch_size) lines are in memory."""
        if max_batch_size < 1 or window < 0:
            raise _starling.UsageError(f"max_batch_size: {max_batch_size} is not allowed; it must be at least 1")
        window = window or 16 * max_batch_size
        lines = iter(source)
        first = list(itertools.islice(lines, 1))
        lines = itertools.chain(first, lines)
        if target_prefix is not None or (first and not isinstance(first[0], (str, bytes))):
            yield from self._iterable_of_tokens(lines, target_prefix, window, batch_type=batch_type, **options)
            return
        _check(options)
        pending: "list[_starling.Request]" = []
        for each in _windows((line.rstrip("\n") for line in lines), window):
            pending.append(self._open.submit(each, options))
            if len(pending) > 1:
                yield from pending.pop(0).result()
        for request in pending:
            yield from request.result()

    def score(
        self, source: Union[str, Sequence[str]], target: Union[str, Sequence[str]], **options: Any
    ) -> Union[_starling.Score, List[_starling.Score]]:
        """Returns the log-probabilities (nats) of given translations. Of the options only prefixes and target_language count."""
        _check(options)
        if isinstance(source, str) != isinstance(target, str):
            raise TypeError("source and target are both strings or both lists of them")
        if isinstance(source, str):
            return self._open.score([source], [target], options)[0]
        return self._open.score(source, target, options)

    def tokenize(self, sentence: str) -> List[str]:
        """Splits a sentence into pieces of the source vocabulary."""
        return self._open.source_tokens(sentence)

    def tokenize_target(self, sentence: str) -> List[str]:
        """Splits a sentence into pieces of the target vocabulary."""
        return self._open.target_tokens(sentence)

    def detokenize(self, tokens: Tokens) -> str:
        """Returns the text of pieces of the target vocabulary."""
        return self._open.join_target_tokens(tokens)


_OPTIONS = (
    "beam",
    "n_best",
    "length_penalty",
    "length_penalty_form",
    "coverage_penalty",
    "prune_threshold",
    "max_length_factor",
    "max_length_offset",
    "target_language",
    "source_prefix",
    "target_prefix",
    "suppress",
    "no_repeat_ngram",
    "allow_unknown",
    "alignment",
    "confidence",
    "glossary",
    "min_length",
    "patience",
    "repetition_penalty",
    "word_penalty",
    "prefix_bias",
    "end_tokens",
    "max_source_tokens",
    "attention",
    "sample",
    "top_k",
    "top_p",
    "temperature",
    "seed",
    "alternatives",
    "min_alternative_probability",
    "on_token",
)


def _check(options: "dict[str, Any]") -> None:
    for name in options:
        if name not in _OPTIONS:
            import difflib

            near = difflib.get_close_matches(name, _OPTIONS, 1)
            advice = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(_OPTIONS)}"
            raise TypeError(f"translate() has no option '{name}'; {advice}")
