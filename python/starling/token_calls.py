"""The calls of a translator that users of CTranslate2 know, with its names and defaults."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import time
from typing import Any, BinaryIO, Callable, Iterable, Iterator, List, Optional, Sequence, TextIO, Union

from starling import _starling
from starling.results import Background, ExecutionStats, GenerationStepResult, Job, ScoringResult, TranslationResult, failed_jobs
from starling.token_batches import Batch, Tokens, tokens_of

Path = Union[str, "os.PathLike[str]"]


def _windows(items: Iterable[Any], size: int) -> Iterator[List[Any]]:
    iterator = iter(items)
    while window := list(itertools.islice(iterator, size)):
        yield window


def _pairs(source: Iterable[Any], other: Optional[Iterable[Any]]) -> Iterator[Any]:
    """Yields pairs; raises ValueError if one side is shorter."""
    if other is None:
        yield from ((each, None) for each in source)
        return
    missing = object()
    for pair in itertools.zip_longest(source, other, fillvalue=missing):
        if pair[0] is missing or pair[1] is missing:
            raise _starling.UsageError("the two sides do not have the same length; give as many of each")
        yield pair


class TokenCalls:
    """What Translator has of CTranslate2's."""

    _open: _starling.Translator

    def translate_batch(
        self,
        source: Sequence[Tokens],
        target_prefix: Optional[Sequence[Optional[Tokens]]] = None,
        *,
        max_batch_size: int = 0,
        batch_type: str = "examples",
        asynchronous: bool = False,
        beam_size: int = 2,
        patience: float = 1,
        num_hypotheses: int = 1,
        length_penalty: float = 1,
        coverage_penalty: float = 0,
        repetition_penalty: float = 1,
        no_repeat_ngram_size: int = 0,
        disable_unk: bool = False,
        suppress_sequences: Optional[Sequence[Tokens]] = None,
        end_token: Optional[Union[str, Tokens]] = None,
        return_end_token: bool = False,
        prefix_bias_beta: float = 0,
        max_input_length: int = 1024,
        max_decoding_length: int = 256,
        min_decoding_length: int = 1,
        use_vmap: bool = False,
        return_scores: bool = False,
        return_logits_vocab: bool = False,
        return_attention: bool = False,
        return_alternatives: bool = False,
        min_alternative_expansion_prob: float = 0,
        sampling_topk: int = 1,
        sampling_topp: float = 1,
        sampling_temperature: float = 1,
        replace_unknowns: bool = False,
        callback: Optional[Callable[[GenerationStepResult], Any]] = None,
    ) -> Union[List[TranslationResult], List[Job]]:
        """Translates sentences of tokens, with the options and their defaults that callers of CTranslate2 know.

        Batch sizes are accepted and mean nothing here. Tokens of a target prefix are part of the hypotheses. docs/guides/python.md says
        what is not as in CTranslate2.
        """
        options = {name: value for name, value in locals().items() if name not in ("self", "source", "target_prefix", "asynchronous")}
        try:
            return self._translated(Batch(self._open, source, target_prefix, **options), asynchronous)
        except ValueError as error:
            if not asynchronous:
                raise
            return failed_jobs(error, len(source))

    def _translated(self, batch: Batch, asynchronous: bool) -> List[Any]:
        if batch.waits:
            background = Background(lambda: self._waited(batch)) if asynchronous else None
            return background.jobs(len(batch.sources)) if background else self._waited(batch)
        jobs: List[Any] = [None] * len(batch.sources)
        for prefix, indices in batch.groups().items():
            lengths = [batch.tell_prefix(index) for index in indices]
            wanted = [index for index, length in zip(indices, lengths) if length is None]
            request = self._open.submit_tokens([batch.sources[i] for i in wanted], batch.options_of(prefix, wanted)) if wanted else None
            for at, index in enumerate(wanted):
                jobs[index] = Job(request.done, lambda request=request, at=at, index=index: batch.result(index, request.result_of(at)))
            for index, length in zip(indices, lengths):
                if length is not None:
                    jobs[index] = Job(lambda: True, lambda index=index, length=length: batch.result_without_search(index, length))
        for index, job in enumerate(jobs):
            if job is None:
                jobs[index] = Job(lambda: True, lambda index=index: batch.result_without_search(index))
        return jobs if asynchronous else [job.result() for job in jobs]

    def _waited(self, batch: Batch) -> List[TranslationResult]:
        results: List[Any] = [None] * len(batch.sources)
        for prefix, indices in batch.groups().items():
            if len(prefix) >= batch.most:
                continue
            for index in indices:
                batch.tell_prefix(index)
            found = self._open.translate_tokens([batch.sources[i] for i in indices], batch.options_of(prefix, indices))
            for index, translation in zip(indices, found):
                results[index] = batch.result(index, translation)
        return [batch.result_without_search(i) if result is None else result for i, result in enumerate(results)]

    def generate_tokens(
        self, source: Tokens, target_prefix: Optional[Tokens] = None, *, return_log_prob: bool = False, **options: Any
    ) -> Iterator[GenerationStepResult]:
        """Yields the tokens of a translation as they come, with a beam of 1 or drawn (sampling_topk), and the end of sentence. Options:
        those of translate_batch."""
        steps: "queue.Queue[GenerationStepResult]" = queue.Queue()
        closed = False

        def tell(step: GenerationStepResult) -> bool:
            steps.put(step)
            return closed

        options.update(beam_size=1, callback=tell, asynchronous=True, return_scores=return_log_prob)
        (job,) = self.translate_batch([source], None if target_prefix is None else [target_prefix], **options)
        try:
            while True:
                done = job.done()
                try:
                    yield steps.get(timeout=0 if done else 0.05)
                except queue.Empty:
                    if done:
                        break
            job.result()
        finally:
            closed = True

    def score_batch(
        self,
        source: Sequence[Tokens],
        target: Sequence[Tokens],
        *,
        max_batch_size: int = 0,
        batch_type: str = "examples",
        max_input_length: int = 1024,
        offset: int = 0,
        asynchronous: bool = False,
    ) -> Union[List[ScoringResult], List[Job]]:
        """Returns the log-probabilities of translations that are given as tokens, with the names that callers of CTranslate2 know."""
        if asynchronous:
            return Background(lambda: self.score_batch(source, target, max_input_length=max_input_length, offset=offset)).jobs(len(source))
        opened = self._open
        sources = [tokens_of(tokens, f"source {i}") for i, tokens in enumerate(source)]
        targets = [tokens_of(tokens, f"target {i}") for i, tokens in enumerate(target)]
        if max_input_length > 0:
            room = max_input_length - int(opened.model.reads_source_end)
            sources = [tokens[: max(1, room)] for tokens in sources]
            targets = [tokens[: max(0, max_input_length - 1)] for tokens in targets]
        if len(sources) != len(targets):
            raise _starling.UsageError(f"{len(sources)} sources and {len(targets)} targets; give one target for each source")
        # A model that reads no end of sentence has nothing to read of an empty source.
        read = [i for i, tokens in enumerate(sources) if tokens or opened.model.reads_source_end]
        scores = dict(zip(read, opened.score_tokens([sources[i] for i in read], [targets[i] for i in read], {})))
        results = []
        for i, tokens in enumerate(targets):
            known = opened.known_target_tokens(tokens) + [opened.model.end_token]
            log_probs = scores[i].log_probabilities if i in scores else [0.0] * len(known)
            results.append(ScoringResult((scores[i].tokens if i in scores else known)[offset:], log_probs[offset:]))
        return results

    def score_iterable(
        self, source: Iterable[Tokens], target: Iterable[Tokens], max_batch_size: int = 64, batch_type: str = "examples", **options: Any
    ) -> Iterator[ScoringResult]:
        """Scores pairs of any number, and yields the results in their order. Options: those of score_batch."""
        for window in _windows(_pairs(source, target), 16 * max(1, max_batch_size)):
            yield from self.score_batch([each[0] for each in window], [each[1] for each in window], **options)

    def _iterable_of_tokens(
        self, source: Iterable[Tokens], target_prefix: Optional[Iterable[Optional[Tokens]]], window: int, **options: Any
    ) -> Iterator[TranslationResult]:
        pending: List[List[Job]] = []
        for pairs in _windows(_pairs(source, target_prefix), window):
            pending.append(self.translate_batch([p[0] for p in pairs], [p[1] for p in pairs], asynchronous=True, **options))
            if len(pending) > 1:
                yield from (job.result() for job in pending.pop(0))
        for jobs in pending:
            yield from (job.result() for job in jobs)

    def translate_file(
        self,
        source_path: Path,
        output_path: Path,
        target_path: Optional[Path] = None,
        *,
        max_batch_size: int = 32,
        read_batch_size: int = 0,
        batch_type: str = "examples",
        with_scores: bool = False,
        source_tokenize_fn: Optional[Callable[[str], Tokens]] = None,
        target_tokenize_fn: Optional[Callable[[str], Tokens]] = None,
        target_detokenize_fn: Optional[Callable[[Tokens], str]] = None,
        **options: Any,
    ) -> ExecutionStats:
        """Translates a file of tokens with spaces between them, or of text with functions that split and join it. Options: those of
        translate_batch."""
        if (source_tokenize_fn is None) != (target_detokenize_fn is None):
            raise _starling.UsageError("source_tokenize_fn and target_detokenize_fn: give both or none of them")
        if target_path is not None and source_tokenize_fn is not None and target_tokenize_fn is None:
            raise _starling.UsageError("target_tokenize_fn: a file of target prefixes needs it as well; give it")
        join = target_detokenize_fn or " ".join
        begin, examples, tokens = time.monotonic(), 0, 0
        window = 16 * max(1, max_batch_size)
        with contextlib.ExitStack() as files:
            out = files.enter_context(_result_file(output_path, source_path, target_path))
            lines = _lines(files, source_path, source_tokenize_fn)
            prefixes = None if target_path is None else _lines(files, target_path, target_tokenize_fn)
            pairs = _same_length(lines, prefixes, source_path, target_path)
            first, second = itertools.tee(pairs)
            results = self._iterable_of_tokens(
                (each[0] for each in first), (each[1] for each in second), window, return_scores=with_scores, **options
            )
            for result in results:
                examples += 1
                tokens += len(result.hypotheses[0])
                for number, hypothesis in enumerate(result.hypotheses):
                    out.write((f"{result.scores[number]:g} ||| " if with_scores else "") + join(hypothesis) + "\n")
        return ExecutionStats(tokens, examples, 1000 * (time.monotonic() - begin))

    def score_file(
        self,
        source_path: Path,
        target_path: Path,
        output_path: Path,
        *,
        max_batch_size: int = 32,
        read_batch_size: int = 0,
        batch_type: str = "examples",
        with_tokens_score: bool = False,
        source_tokenize_fn: Optional[Callable[[str], Tokens]] = None,
        target_tokenize_fn: Optional[Callable[[str], Tokens]] = None,
        target_detokenize_fn: Optional[Callable[[Tokens], str]] = None,
        **options: Any,
    ) -> ExecutionStats:
        """Scores a file of pairs: writes the mean log-probability per token, the tokens and, if asked for, that of each, with ` ||| `
        between them."""
        join = target_detokenize_fn or " ".join
        begin, examples, tokens = time.monotonic(), 0, 0
        with contextlib.ExitStack() as files:
            out = files.enter_context(_result_file(output_path, source_path, target_path))
            source, target = _lines(files, source_path, source_tokenize_fn), _lines(files, target_path, target_tokenize_fn)
            pairs = _same_length(source, target, source_path, target_path)
            for window in _windows(pairs, 16 * max(1, max_batch_size)):
                for result in self.score_batch([each[0] for each in window], [each[1] for each in window], **options):
                    examples += 1
                    tokens += len(result.tokens)
                    line = f"{sum(result.log_probs) / max(1, len(result.log_probs)):g} ||| {join(result.tokens)}"
                    if with_tokens_score:
                        line += " |||" + "".join(f" {each:g}" for each in result.log_probs)
                    out.write(line + "\n")
        return ExecutionStats(tokens, examples, 1000 * (time.monotonic() - begin))


@contextlib.contextmanager
def _result_file(path: Path, *inputs: Optional[Path]) -> Iterator[TextIO]:
    """A file of results. It is PATH.partial until all of them are there, so that an error leaves an earlier PATH as it was."""
    if not os.path.exists(path) or os.path.isfile(path):
        for each in inputs:
            if each is not None and os.path.exists(path) and os.path.exists(each) and os.path.samefile(path, each):
                raise _starling.UsageError(f"{path} is an input, which would be overwritten; give another file for the results")
        partial = os.fspath(path) + ".partial"
        with open(partial, "w", encoding="utf-8") as out:
            yield out
        os.replace(partial, path)
    else:  # a pipe, a terminal
        with open(path, "w", encoding="utf-8") as out:
            yield out


def _lines(files: contextlib.ExitStack, path: Path, split: Optional[Callable[[str], Tokens]]) -> Iterator[List[str]]:
    return _tokens_of_lines(files.enter_context(open(path, "rb")), path, split)


def _tokens_of_lines(file: BinaryIO, path: Path, split: Optional[Callable[[str], Tokens]]) -> Iterator[List[str]]:
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise _starling.DataError(f"{path}:{number}: invalid UTF-8 at byte {error.start + 1}; convert the file to UTF-8") from None
        yield list(split(text)) if split else [token for token in text.split(" ") if token]


def _same_length(source: Iterable[Any], target: Optional[Iterable[Any]], source_path: Path, target_path: Optional[Path]) -> Iterator[Any]:
    try:
        yield from _pairs(source, target)
    except _starling.UsageError:
        raise _starling.DataError(f"{target_path} and {source_path} have different numbers of lines; give one line for each line") from None
