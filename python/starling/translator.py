"""Translating and scoring."""

from __future__ import annotations

import itertools
import os
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Union, overload

from starling import _starling

Tokens = Sequence[str]


class TranslationResult(NamedTuple):
    """The translations of a sentence that was given as tokens, best first, with the names that callers of CTranslate2 know."""

    hypotheses: List[List[str]]
    scores: List[float]
    attention: List[Any]


class ScoringResult(NamedTuple):
    """The log-probability (nats) of each target token, the end of sentence included."""

    tokens: List[str]
    log_probs: List[float]


class Job:
    """A result that is being computed."""

    def __init__(self, request: _starling.Request, index: int, converted: Callable[[_starling.Translation], TranslationResult]):
        self._request = request
        self._index = index
        self._converted = converted

    def done(self) -> bool:
        return self._request.done()

    def result(self) -> TranslationResult:
        """Waits for the result; raises what went wrong."""
        return self._converted(self._request.result()[self._index])


def _windows(items: Iterable[Any], size: int) -> Iterator[List[Any]]:
    iterator = iter(items)
    while window := list(itertools.islice(iterator, size)):
        yield window


class Translator:
    """A model that translates. Any number of threads may use one; their sentences are computed together.

    model: a run directory, a checkpoint, a model directory, or a model of another program (Marian, OPUS-MT, CTranslate2, Argos, Hugging
    Face, Firefox), which is imported once into the user's cache.
    device: auto (a card if there is one, else the processor), cpu, cuda, cuda:1.
    threads: each translates sentences of its own; 0 = one per core.
    precision: auto, f32, bf16, int8.
    max_source_tokens: longer sources are cut there, and their results say so (truncated).
    log: called with a line about what takes long at the start, such as importing a model.
    """

    def __init__(
        self,
        model: Union[str, "os.PathLike[str]"],
        device: str = "auto",
        threads: int = 0,
        *,
        precision: str = "auto",
        max_source_tokens: int = 1000,
        rows: int = 256,
        log: Optional[Callable[[str], Any]] = None,
    ):
        self._translator: Optional[_starling.Translator] = _starling.Translator(
            os.fspath(model), device, precision, threads, max_source_tokens, rows, log
        )

    @property
    def _open(self) -> _starling.Translator:
        if self._translator is None:
            raise _starling.UsageError("the translator is closed; open another one")
        return self._translator

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

        Options, each of which is the model's own setting if it is not given: beam, n_best (1), length_penalty, length_penalty_form (gnmt
        or power), coverage_penalty, prune_threshold, max_length_factor, max_length_offset, target_language (of a model that translates
        into several), source_prefix and target_prefix (pieces, with spaces between them), suppress (a list of pieces or sequences of
        them), no_repeat_ngram, allow_unknown, alignment (True: also find pairs of source and target tokens).
        """
        _check(options)
        if html or document:
            if isinstance(text, (str, bytes)):
                return self._open.translate_document(text, html, options)
            return [self._open.translate_document(each, html, options) for each in text]
        if isinstance(text, (str, bytes)):
            return self._open.translate([text], options)[0]
        return self._open.translate(text, options)

    def translate_iterable(self, lines: Iterable[str], *, window: int = 1024, **options: Any) -> Iterator[_starling.Translation]:
        """Translates lines of any number, such as those of an open file, and yields the translations in their order. At most three times
        `window` lines are in memory."""
        _check(options)
        pending: "list[_starling.Request]" = []
        for each in _windows((line.rstrip("\n") for line in lines), window):
            pending.append(self._open.submit(each, options))
            if len(pending) > 1:
                yield from pending.pop(0).result()
        for request in pending:
            yield from request.result()

    def translate_batch(
        self,
        source: Sequence[Tokens],
        target_prefix: Optional[Sequence[Optional[Tokens]]] = None,
        *,
        beam_size: int = 2,
        num_hypotheses: int = 1,
        length_penalty: float = 1,
        coverage_penalty: float = 0,
        no_repeat_ngram_size: int = 0,
        disable_unk: bool = False,
        suppress_sequences: Optional[Sequence[Tokens]] = None,
        max_decoding_length: int = 256,
        return_scores: bool = False,
        asynchronous: bool = False,
        max_batch_size: int = 0,
        batch_type: str = "examples",
        max_input_length: int = 1024,
        min_decoding_length: int = 1,
    ) -> Union[List[TranslationResult], List[Job]]:
        """Translates sentences of tokens, with the options and their defaults that callers of CTranslate2 know.

        Its batch sizes are accepted and mean nothing here. max_input_length is Translator's max_source_tokens. Tokens of a target prefix
        are part of the hypotheses.
        """
        if min_decoding_length > 1:
            raise _starling.UsageError("min_decoding_length: translations of a least length are not supported; leave it out")
        options = {
            "beam": max(beam_size, num_hypotheses),
            "n_best": num_hypotheses,
            "length_penalty": length_penalty,
            "length_penalty_form": "power",
            "coverage_penalty": coverage_penalty,
            "no_repeat_ngram": no_repeat_ngram_size,
            "allow_unknown": not disable_unk,
            "max_length_factor": 0.0,
            "max_length_offset": max_decoding_length,
        }
        if suppress_sequences:
            options["suppress"] = [" ".join(sequence) for sequence in suppress_sequences]
        sources = [list(tokens) for tokens in source]
        prefixes = [tuple(prefix or ()) for prefix in target_prefix] if target_prefix else [()] * len(sources)
        if len(prefixes) != len(sources):
            raise _starling.UsageError(f"{len(sources)} sources and {len(prefixes)} target prefixes; give one for each source")
        # A search has one prefix, so sentences with equal ones go together.
        groups: "dict[tuple[str, ...], list[int]]" = {}
        for index, prefix in enumerate(prefixes):
            groups.setdefault(prefix, []).append(index)
        results: "list[Any]" = [None] * len(sources)
        jobs = []
        for prefix, indices in groups.items():
            of_group = dict(options, target_prefix=" ".join(prefix)) if prefix else options
            jobs.append((self._open.submit_tokens([sources[i] for i in indices], of_group), list(prefix), indices))

        def converted(translation: _starling.Translation, prefix: List[str]) -> TranslationResult:
            found = translation.hypotheses
            return TranslationResult(
                [prefix + each.tokens for each in found], [each.score for each in found] if return_scores else [], []
            )

        for request, prefix, indices in jobs:
            if asynchronous:
                for at, index in enumerate(indices):
                    results[index] = Job(request, at, lambda each, prefix=prefix: converted(each, prefix))
            else:
                for index, translation in zip(indices, request.result()):
                    results[index] = converted(translation, prefix)
        return results

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

    def score_batch(
        self,
        source: Sequence[Tokens],
        target: Sequence[Tokens],
        *,
        max_batch_size: int = 0,
        batch_type: str = "examples",
        max_input_length: int = 1024,
    ) -> List[ScoringResult]:
        """Returns the log-probabilities of translations that are given as tokens, with the names that callers of CTranslate2 know."""
        scores = self._open.score_tokens(source, target, {})
        return [ScoringResult(each.tokens, each.log_probabilities) for each in scores]

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
)


def _check(options: "dict[str, Any]") -> None:
    for name in options:
        if name not in _OPTIONS:
            import difflib

            near = difflib.get_close_matches(name, _OPTIONS, 1)
            advice = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(_OPTIONS)}"
            raise TypeError(f"translate() has no option '{name}'; {advice}")
