"""Prints of a run's events.jsonl: planned and actual peak memory, MiB, the target tokens of its micro-batches, and the memory that leaves
room for four tenths of their activations. Usage: bench/planned_memory.py EVENTS"""
import json
import sys

events = [json.loads(line) for line in open(sys.argv[1])]
start = next(e for e in events if e["type"] == "start")
stop = [e for e in events if e["type"] == "stop"][-1]
kinds = start["memory_mib"]
rest = start["planned_memory_mib"] - kinds["activations"] - kinds.get("copies for checkpoints", 0)
print(int(start["planned_memory_mib"]), stop["peak_memory_mib"], start["micro_batch_tokens"], int(rest + 0.4 * kinds["activations"]))
