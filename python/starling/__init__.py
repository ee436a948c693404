"""Starling: neural machine translation.

>>> import starling
>>> translator = starling.Translator("run")
>>> translator.translate("A dog runs.").text
'Ein Hund läuft.'

docs/guides/python.md of the project has more.
"""

from starling import _starling

_starling.require_main_interpreter()  # a subinterpreter gets the module of the main one without its initialisation

from starling._starling import (  # noqa: E402
    DataError,
    FileError,
    Hypothesis,
    MemoryLimitError,
    MetricScore,
    ModelInfo,
    Score,
    StarlingError,
    TrainingError,
    TrainResult,
    Translation,
    UsageError,
    __version__,
    describe_model,
    export_model,
)
from starling.metrics import evaluate
from starling.training import train
from starling.translator import Job, ScoringResult, TranslationResult, Translator

__all__ = [
    "DataError",
    "FileError",
    "Hypothesis",
    "Job",
    "MemoryLimitError",
    "MetricScore",
    "ModelInfo",
    "Score",
    "ScoringResult",
    "StarlingError",
    "TrainResult",
    "TrainingError",
    "Translation",
    "TranslationResult",
    "Translator",
    "UsageError",
    "__version__",
    "describe_model",
    "evaluate",
    "export_model",
    "train",
]
