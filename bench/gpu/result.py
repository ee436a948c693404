#!/usr/bin/env python3
"""A line about the JSON that a benchmark printed, which is added to a file. Usage: result.py limits|train|peer|translate FILE ALL [NAME]"""
import json
import sys


def train(r):
    ops = sorted(r["profile"].items(), key=lambda op: -op[1]["ms_per_step"])[:5]
    return (f"{r['target_tokens_per_second']:.0f} target tokens/s, step {r['step_ms']:.1f} ms, products {r['products_ms']:.1f} ms, "
            f"efficiency {r['efficiency']:.3f}, {r['peak_memory_mib']} MiB; peak {r['bf16_gflops'] / 1e3:.0f} TFLOP/s, "
            f"{r['memory_gbytes_per_second']:.0f} GB/s; " + ", ".join(f"{name} {op['ms_per_step']:.1f}" for name, op in ops))


def translate(r):
    return "; ".join(f"beam {x['beam']}: {x['tokens_per_second']:.0f} tokens/s, products {x['product_share']:.2f}, "
                     f"one sentence {x['latency_p50_ms']:.1f} ms" for x in r["rows"])


LINES = {
    "limits": lambda r: f"bf16 {r['bf16_gflops'] / 1e3:.0f} TFLOP/s, {r['memory_gbytes_per_second']:.0f} GB/s",
    "peer": lambda r: f"PyTorch {'compiled' if r['compiled'] else 'eager'}: {r['target_tokens_per_second']:.0f} target tokens/s, "
                      f"step {r['step_ms']:.1f} ms",
    "train": train,
    "translate": translate,
}
kind, path, collection = sys.argv[1:4]
text = open(path).read()
result = json.loads(text[text.index("{"):])
with open(collection, "a") as out:
    out.write(json.dumps({"step": (sys.argv + [kind])[4], **result}) + "\n")
print(LINES[kind](result))
