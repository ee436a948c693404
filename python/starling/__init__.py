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
    Step,
    TrainingError,
    TrainResult,
    Translation,
    UsageError,
    __version__,
    describe_model,
    export_model,
)
from starling.metrics import evaluate
from starling.results import (
    AsyncScoringResult,
    AsyncTranslationResult,
    ExecutionStats,
    GenerationStepResult,
    Job,
    ScoringResult,
    TranslationResult,
)
from starling.settings import contains_model, get_cuda_device_count, get_log_level, get_supported_compute_types, set_log_level
from starling.token_batches import set_random_seed
from starling.training import train
from starling.translator import Translator

__all__ = [
    "AsyncScoringResult",
    "AsyncTranslationResult",
    "DataError",
    "ExecutionStats",
    "FileError",
    "GenerationStepResult",
    "Hypothesis",
    "Job",
    "MemoryLimitError",
    "MetricScore",
    "ModelInfo",
    "Score",
    "ScoringResult",
    "StarlingError",
    "Step",
    "TrainResult",
    "TrainingError",
    "Translation",
    "TranslationResult",
    "Translator",
    "UsageError",
    "__version__",
    "contains_model",
    "describe_model",
    "evaluate",
    "export_model",
    "get_cuda_device_count",
    "get_log_level",
    "get_supported_compute_types",
    "set_log_level",
    "set_random_seed",
    "train",
]

_ELSEWHERE = {
    "Encoder": "encoders alone are not supported",
    "Generator": "language models are not supported; Translator translates",
    "StorageView": "tensors are not shown",
    "converters": "models of other programs are imported when a Translator opens them",
    "models": "models other than those that translate are not supported",
    "specs": "models of other programs are imported when a Translator opens them",
}


def __getattr__(name: str):
    raise AttributeError(f"module 'starling' has no '{name}'" + (f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""))
