"""Translation quality, equal to sacreBLEU in numbers and signatures."""

from __future__ import annotations

from typing import Sequence, Union

from starling import _starling


def evaluate(
    metric: str,
    hypotheses: Sequence[str],
    references: Union[Sequence[str], Sequence[Sequence[str]]],
    *,
    tokenize: str = "auto",
    lowercase: bool = False,
) -> _starling.MetricScore:
    """Scores a corpus by bleu, chrf, chrf++, ter or gleu, or lines of links by aer.

    references: one text for each hypothesis, or several lists of them. tokenize, of BLEU: auto (by the language of the references), 13a,
    intl, char, zh, ja-mecab, none, spm:FILE.
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise TypeError("hypotheses and references are lists of sentences, not one string")
    several = len(references) > 0 and not isinstance(references[0], str)
    lists = [list(each) for each in references] if several else [list(references)]
    return _starling.evaluate(metric, list(hypotheses), lists, tokenize, lowercase)
