"""What the calls with CTranslate2's names return."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, NamedTuple, Optional


@dataclass(frozen=True)
class TranslationResult:
    """The translations of a sentence that was given as tokens, best first. `attention`, if asked for: by target token, the attention to
    each source token."""

    hypotheses: List[List[str]]
    scores: List[float]
    attention: List[List[List[float]]]
    logits: List[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __getitem__(self, number: int) -> Dict[str, Any]:
        """Returns a hypothesis as a dictionary, as CTranslate2 did before version 2.0."""
        warnings.warn("results are no lists any more; use hypotheses, scores and attention", DeprecationWarning, stacklevel=2)
        hypothesis: Dict[str, Any] = {"tokens": self.hypotheses[number]}
        if self.scores:
            hypothesis["score"] = self.scores[number]
        if self.attention:
            hypothesis["attention"] = self.attention[number]
        return hypothesis


class ScoringResult(NamedTuple):
    """The log-probability (nats) of each target token, the end of sentence included."""

    tokens: List[str]
    log_probs: List[float]


class GenerationStepResult(NamedTuple):
    """A token of a translation in progress, or the end of sentence."""

    step: int
    batch_id: int
    token_id: int
    hypothesis_id: int
    token: str
    log_prob: Optional[float]
    is_last: bool


class ExecutionStats(NamedTuple):
    """What translating or scoring a file was."""

    num_tokens: int
    num_examples: int
    total_time_in_ms: float


class Job:
    """A result that is being computed."""

    def __init__(self, done: Callable[[], bool], result: Callable[[], Any]):
        self._done = done
        self._result = result

    def done(self) -> bool:
        return self._done()

    def result(self) -> Any:
        """Waits for the result; raises what went wrong."""
        return self._result()


AsyncTranslationResult = AsyncScoringResult = Job


class Background:
    """A call in a thread of its own."""

    def __init__(self, function: Callable[[], List[Any]]):
        self._function = function
        self._results: List[Any] = []
        self._error: Optional[BaseException] = None
        self._ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._results = self._function()
        except BaseException as error:
            self._error = error
        self._ended.set()

    def results(self) -> List[Any]:
        while not self._ended.wait(0.1):  # hears Ctrl-C
            pass
        if self._error is not None:
            raise self._error
        return self._results

    def jobs(self, count: int) -> List[Job]:
        return [Job(self._ended.is_set, lambda index=index: self.results()[index]) for index in range(count)]


def failed_jobs(error: BaseException, count: int) -> List[Job]:
    """Returns jobs whose results raise the error."""

    def fail() -> None:
        raise error

    return [Job(lambda: True, fail) for _ in range(count)]
