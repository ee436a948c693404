"""Settings of a translator by CTranslate2's names, and the functions of its module."""

from __future__ import annotations

import logging
import os
from typing import Any, Mapping, Sequence, Set, Tuple, Union

from starling import _starling

# What computes for each of CTranslate2's types. Types that Starling does not have become the next more exact one that it has.
_PRECISIONS = {
    "default": "",
    "auto": "auto",
    "float32": "f32",
    "float16": "bf16",
    "bfloat16": "bf16",
    "int16": "f32",
    "int8": "int8",
    "int8_float32": "int8",
    "int8_float16": "int8",
    "int8_bfloat16": "int8",
}
_level = logging.WARNING


def precision_of(compute_type: Union[str, Mapping[str, str], None], device: str, model: str) -> str:
    """Returns the precision of a compute type; None: what is fast, as "auto"."""
    if compute_type is None:
        return "auto"
    if isinstance(compute_type, Mapping):
        on_card = device.startswith("cuda") or (device == "auto" and _starling.card_count() > 0)
        compute_type = compute_type.get("cuda" if on_card else "cpu", "default")
    if not isinstance(compute_type, str):
        raise TypeError("compute_type is neither a string nor a dictionary of strings by device")
    if compute_type not in _PRECISIONS:
        raise _starling.UsageError(f"compute_type: there is no compute type '{compute_type[:40]}'; choose one of {', '.join(_PRECISIONS)}")
    if compute_type == "default":  # that of the weights
        return "int8" if _starling.describe_model(model).quantized else "f32"
    return _PRECISIONS[compute_type]


def compute_type_of(precision: str, device: str) -> str:
    if precision == "int8":
        return "int8_bfloat16" if device.startswith("cuda") else "int8_float32"
    return {"f32": "float32", "bf16": "bfloat16"}[precision]


def device_of(device: str, device_index: Union[int, Sequence[int]]) -> str:
    """Returns the device with its index."""
    indices = [device_index] if isinstance(device_index, int) else list(device_index)
    if len(indices) != 1:
        raise _starling.UsageError(f"a translator has one device index, not {len(indices)}; open one translator for each device")
    if device == "cuda" and indices[0] != 0:
        return f"cuda:{indices[0]}"
    if indices[0] != 0 and not device.startswith("cuda"):
        raise _starling.UsageError(f"'{device}' has no device index {indices[0]}; leave it out")
    return device


def threads_of(threads: int, inter_threads: int, intra_threads: int) -> int:
    """Returns the threads of a translator, each of which translates sentences of its own: as many as the two numbers have together."""
    if threads or not intra_threads:
        return threads
    return max(1, inter_threads) * intra_threads


def contains_model(path: Union[str, "os.PathLike[str]"]) -> bool:
    """Whether a directory seems to have a model, of CTranslate2 or Starling."""
    return any(os.path.isfile(os.path.join(path, name)) for name in ("model.bin", "model.safetensors"))


def get_cuda_device_count() -> int:
    return _starling.card_count()


def get_supported_compute_types(device: str, device_index: int = 0) -> Set[str]:
    """The types that compute as their name says."""
    if device not in ("cpu", "cuda"):
        raise _starling.UsageError(f"there is no device '{device[:40]}'; choose cpu or cuda")
    if device == "cuda" and device_index >= _starling.card_count():
        raise _starling.UsageError(f"there is no card {device_index}; choose cpu")
    types = {"float32", "bfloat16", "int8"}
    return types | ({"int8_bfloat16"} if device == "cuda" else {"int8_float32"})


def get_log_level() -> int:
    return _level


def set_log_level(level: int) -> None:
    """Kept for get_log_level(); Starling logs nothing by itself (Translator's log gets what takes long)."""
    global _level
    _level = level


def refuse(options: "Sequence[Tuple[str, Any, str]]") -> None:
    """Raises for the first of options (name, value, why it is not supported) that is set."""
    for name, value, why in options:
        if value:
            raise _starling.UsageError(f"{name}: {why}")
