"""Training in this process, with one rank. Experimental: it may change in any version."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Mapping, Optional, Union

from starling import _starling


def _keys(settings: Mapping[str, Any], prefix: str = "") -> "list[tuple[str, str]]":
    """Returns nested or dotted settings as pairs of a key and a value, as the command line has them."""
    keys = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            keys += _keys(value, f"{prefix}{name}.")
        elif isinstance(value, (list, tuple)) and any(isinstance(each, Mapping) for each in value):
            for number, each in enumerate(value):
                keys += _keys(each, f"{prefix}{name}.{number}.")
        elif isinstance(value, bool):
            keys.append((prefix + name, "true" if value else "false"))
        elif isinstance(value, (list, tuple)):
            keys.append((prefix + name, "[" + ", ".join(str(each) for each in value) + "]"))
        else:
            keys.append((prefix + name, str(value)))
    return keys


def train(
    config: Union[str, "os.PathLike[str]", Mapping[str, Any]] = "",
    *,
    on_event: Optional[Callable[[dict], Any]] = None,
    on_log: Optional[Callable[[str], Any]] = None,
    **sections: Mapping[str, Any],
) -> _starling.TrainResult:
    """Trains by a configuration: a YAML file, or a mapping as it would hold; sections given by name come on top of a file.

    >>> starling.train("my.yml", train={"max-steps": 1000}, on_event=print)

    on_event gets each record of events.jsonl as a dict, on_log each line of train.log. An exception that they raise, and Ctrl-C, end the
    run with a checkpoint; the same call continues it. Returns the run directory, a path for Translator.
    """
    keys = _keys(sections)
    if isinstance(config, Mapping):
        keys = _keys(config) + keys
        config = ""
    event = None if on_event is None else lambda text: on_event(json.loads(text))
    return _starling.train(os.fspath(config), keys, event, on_log)
