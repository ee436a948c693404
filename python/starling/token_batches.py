"""How CTranslate2's options become those of Starling, and Starling's results CTranslate2's."""

from __future__ import annotations

import itertools
import numbers
import random
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from starling import _starling
from starling.results import GenerationStepResult, TranslationResult

Tokens = Sequence[str]

_seeds = itertools.count(random.SystemRandom().getrandbits(48))


def set_random_seed(seed: int) -> None:
    """Makes the translations that are drawn from now on the same in each run of a program."""
    global _seeds
    _seeds = itertools.count(int(seed) << 20)


def tokens_of(tokens: Any, what: str) -> List[str]:
    if isinstance(tokens, (str, bytes)):
        raise TypeError(f"{what} is a string, not a list of tokens")
    try:
        return list(tokens)
    except TypeError:
        raise TypeError(f"{what} is of type {type(tokens).__name__}, not a list of tokens") from None


_FRACTIONS = frozenset(
    "patience length_penalty coverage_penalty repetition_penalty prefix_bias_beta min_alternative_expansion_prob sampling_topp "
    "sampling_temperature".split()
)


def _require_numbers(options: Dict[str, Any]) -> None:
    """Raises TypeError for an option that is no number, or True or False."""
    for name, value in options.items():
        fraction = name in _FRACTIONS
        if not isinstance(value, numbers.Real if fraction else numbers.Integral) and type(value).__name__ != "bool_":  # numpy's
            raise TypeError(f"{name} cannot be {value!r:.40} ({type(value).__name__}); give a {'number' if fraction else 'whole number'}")


class Batch:
    """A call of translate_batch: what it asks for, and what becomes of each sentence."""

    def __init__(
        self,
        translator: _starling.Translator,
        source: Sequence[Tokens],
        target_prefix: Optional[Sequence[Optional[Tokens]]],
        *,
        max_batch_size: int,
        batch_type: str,
        beam_size: int,
        patience: float,
        num_hypotheses: int,
        length_penalty: float,
        coverage_penalty: float,
        repetition_penalty: float,
        no_repeat_ngram_size: int,
        disable_unk: bool,
        suppress_sequences: Optional[Sequence[Tokens]],
        end_token: Optional[Union[str, Tokens]],
        return_end_token: bool,
        prefix_bias_beta: float,
        max_input_length: int,
        max_decoding_length: int,
        min_decoding_length: int,
        use_vmap: bool,
        return_scores: bool,
        return_logits_vocab: bool,
        return_attention: bool,
        return_alternatives: bool,
        min_alternative_expansion_prob: float,
        sampling_topk: int,
        sampling_topp: float,
        sampling_temperature: float,
        replace_unknowns: bool,
        callback: Optional[Callable[[GenerationStepResult], Any]],
    ):
        given = locals()
        words = ("self", "translator", "source", "target_prefix", "batch_type", "suppress_sequences", "end_token", "callback")
        _require_numbers({name: value for name, value in given.items() if name not in words})
        self.translator = translator
        self.info = translator.model
        self.sources = [tokens_of(tokens, f"element {i}") for i, tokens in enumerate(source)]
        if target_prefix is None or len(target_prefix) == 0:
            target_prefix = [None] * len(self.sources)
        if len(target_prefix) != len(self.sources):
            raise _starling.UsageError(f"{len(self.sources)} sources and {len(target_prefix)} target prefixes; give one for each source")
        self.prefixes = [() if p is None else tuple(tokens_of(p, f"prefix {i}")) for i, p in enumerate(target_prefix)]
        if return_logits_vocab:
            raise _starling.UsageError("return_logits_vocab: the scores of the whole vocabulary are not supported; leave it out")
        if batch_type not in ("examples", "tokens"):
            raise _starling.UsageError(f"batch_type: '{batch_type}' is neither 'examples' nor 'tokens'; choose one of them")
        if max_decoding_length < 1:
            raise _starling.UsageError(f"max_decoding_length: {max_decoding_length} is not allowed; it must be at least 1")
        if min_decoding_length > max_decoding_length:
            raise _starling.UsageError(
                f"the least decoding length, {min_decoding_length}, is greater than the most, {max_decoding_length}; "
                "lower min_decoding_length"
            )
        self.samples = sampling_topk != 1 and sampling_temperature != 0
        self.alternatives = return_alternatives
        if self.alternatives and (self.samples or prefix_bias_beta > 0 or callback):
            raise _starling.UsageError("return_alternatives works without sampling, prefix_bias_beta and callback; leave them out")
        if callback and (beam_size != 1 or prefix_bias_beta > 0 or (num_hypotheses > 1 and not self.samples)):
            raise _starling.UsageError("callback: tokens come one by one with a beam of 1 and no prefix_bias_beta; set beam_size to 1")
        self.forced = prefix_bias_beta == 0
        self.num_hypotheses = num_hypotheses
        self.length_penalty = length_penalty
        self.coverage_penalty = coverage_penalty
        self.most, self.least = max_decoding_length, min_decoding_length
        self.return_scores, self.return_attention, self.return_end_token = return_scores, return_attention, return_end_token
        self.replace_unknowns, self.callback = replace_unknowns, callback
        wide = beam_size if self.alternatives or beam_size < 1 else max(beam_size, num_hypotheses)
        self.options: Dict[str, Any] = {
            "beam": wide,
            "n_best": wide if self.samples else num_hypotheses,
            "patience": patience,
            "length_penalty": length_penalty,
            "length_penalty_form": "power",
            "coverage_penalty": coverage_penalty,
            "prune_threshold": 0.0,
            "word_penalty": 0.0,
            "repetition_penalty": repetition_penalty,
            "no_repeat_ngram": no_repeat_ngram_size,
            "allow_unknown": not disable_unk,
            "suppress": [" ".join(tokens_of(each, "a suppressed sequence")) for each in suppress_sequences or []],
            "max_length_factor": 0.0,
            "prefix_bias": prefix_bias_beta,
            "attention": return_attention or replace_unknowns,
        }
        if end_token is not None and len(end_token) > 0:
            self.options["end_tokens"] = [end_token] if isinstance(end_token, str) else list(end_token)
            if not all(isinstance(each, str) for each in self.options["end_tokens"]):
                raise TypeError("end_token: numbers of tokens are not supported; give the tokens themselves")
        if max_input_length > 0:
            self.options["max_source_tokens"] = self.room(max_input_length)
        if self.samples:
            self.options.update(
                sample=True, top_k=sampling_topk, top_p=sampling_topp, temperature=sampling_temperature, seed=next(_seeds) % 2**63
            )
        if self.alternatives:
            self.options.update(alternatives=True, min_alternative_probability=min_alternative_expansion_prob)

    @property
    def waits(self) -> bool:
        """Whether the translator has no asynchronous form of the call."""
        return self.samples or self.alternatives

    def room(self, most: int) -> int:
        """Returns how many tokens of a source count, if it may have `most` with the end of sentence that the model reads."""
        return max(1, most - int(self.info.reads_source_end))

    def groups(self) -> "Dict[tuple[str, ...], List[int]]":
        """Returns the sentences that are to be translated, by target prefix, since a search has one."""
        groups: "Dict[tuple[str, ...], List[int]]" = {}
        for index, prefix in enumerate(self.prefixes):
            if not self.is_empty(index):
                groups.setdefault(prefix, []).append(index)
        return groups

    def is_empty(self, index: int) -> bool:
        return not [token for token in self.sources[index] if token not in ("<s>", self.info.end_token)]

    def options_of(self, prefix: "tuple[str, ...]", indices: List[int]) -> Dict[str, Any]:
        given = len(prefix) if self.forced else 0
        own = dict(self.options, max_length_offset=max(1, self.most - given), min_length=max(0, self.least - given))
        if prefix:
            own["target_prefix"] = " ".join(self.translator.known_target_tokens(prefix))
        if self.callback is not None:
            own["on_token"] = self.told(indices, given)
        return own

    def told(self, indices: List[int], given: int) -> Callable[[_starling.Step], bool]:
        """Returns what calls the callback with each token, and says whether the translation goes on."""
        steps: "Dict[tuple[int, int], int]" = {}

        def tell(step: _starling.Step) -> bool:
            key = (step.sentence, step.hypothesis)
            number = steps.get(key, given)
            steps[key] = number + 1
            log_prob = step.log_probability if self.return_scores else None
            result = GenerationStepResult(
                number, indices[step.sentence], step.token_id, step.hypothesis, step.token, log_prob, step.last
            )
            return not self.callback(result)

        return tell

    def tell_prefix(self, index: int) -> Optional[int]:
        """Calls the callback with the tokens of a target prefix. Returns how many it wanted, if not all."""
        if self.callback is None or not self.forced:
            return None
        for step, token in enumerate(self.translator.known_target_tokens(self.prefixes[index])[: self.most]):
            log_prob = 0.0 if self.return_scores else None
            if self.callback(GenerationStepResult(step, index, -1, 0, token, log_prob, step + 1 == self.most)):
                return step + 1
        return None

    def result_without_search(self, index: int, length: Optional[int] = None) -> TranslationResult:
        """Returns the result of an empty source, which is its target prefix, or of the first `length` tokens of that."""
        hypothesis = self.translator.known_target_tokens(self.prefixes[index])[: self.most if length is None else length]
        count = self.num_hypotheses
        attention = [[0.0] * len(self.sources[index]) for _ in hypothesis]
        return TranslationResult(
            [list(hypothesis) for _ in range(count)],
            [0.0] * count if self.return_scores else [],
            [attention] * count if self.return_attention else [],
        )

    def result(self, index: int, translation: _starling.Translation) -> TranslationResult:
        prefix = self.translator.known_target_tokens(self.prefixes[index]) if self.forced else []
        source = self.sources[index]
        hypotheses, scores, attentions = [], [], []
        for found in translation.hypotheses[: self.num_hypotheses]:
            tokens = prefix + found.tokens
            if self.return_end_token and found.end:
                tokens = tokens + [found.end]
            tokens = tokens[: self.most + int(self.return_end_token)] if len(prefix) < self.most else prefix[: self.most]
            rows = [row[: len(source)] + [0.0] * (len(source) - len(row)) for row in found.attention[: len(tokens)]]
            if self.replace_unknowns:
                for at, row in enumerate(rows):
                    if tokens[at] == self.info.unknown_token:
                        tokens[at] = source[max(range(len(row)), key=row.__getitem__)]
            hypotheses.append(tokens)
            scores.append(self.score(found, len(prefix)))
            attentions.append(rows)
        return TranslationResult(hypotheses, scores if self.return_scores else [], attentions if self.return_attention else [])

    def score(self, found: _starling.Hypothesis, given: int) -> float:
        """Returns the score with the length that CTranslate2 takes, in which the target prefix counts."""
        if given >= self.most:
            return 0.0
        if given == 0 or self.coverage_penalty != 0 or self.alternatives:
            return found.score
        length = len(found.tokens) + int(bool(found.end))
        return found.score * (length / (length + given)) ** self.length_penalty
