"""Writes a CTranslate2 model of an OpenNMT-py Transformer with relative positions and random weights, by CTranslate2's own converter, and
lines of tokens for it.

Usage: ct2_relative.py CTRANSLATE2 OUTPUT_DIRECTORY LINES [QUANTIZATION]
CTRANSLATE2: a checkout; its Python sources are enough. Needs NumPy. Called by ct2_relative.sh.
"""

import os
import sys
import types

import numpy as np

checkout, output, lines = sys.argv[1], sys.argv[2], sys.argv[3]
quantization = sys.argv[4] if len(sys.argv) > 4 else None

# The package without its compiled extension, which the converter does not need.
package = types.ModuleType("ctranslate2")
package.__path__ = [os.path.join(checkout, "python", "ctranslate2")]
sys.modules["ctranslate2"] = package
converters = types.ModuleType("ctranslate2.converters")
converters.__path__ = [os.path.join(package.__path__[0], "converters")]
sys.modules["ctranslate2.converters"] = converters
from ctranslate2.converters import opennmt_py  # noqa: E402

WIDTH, INNER, HEADS, LAYERS, REACH, WORDS = 32, 64, 4, 2, 6, 100
random = np.random.default_rng(7)
vocabulary = ["<unk>", "<blank>", "<s>", "</s>"] + [f"w{i}" for i in range(WORDS)]


def normal(*shape, scale):
    return (scale * random.standard_normal(shape)).astype(np.float32)


def linear(to, name, columns, rows):
    to[name + ".weight"] = normal(rows, columns, scale=1.5 / columns**0.5)
    to[name + ".bias"] = normal(rows, scale=0.1)


def norm(to, name):
    to[name + ".weight"] = 1 + normal(WIDTH, scale=0.1)
    to[name + ".bias"] = normal(WIDTH, scale=0.1)


def attention(to, name, relative):
    for part in ("linear_query", "linear_keys", "linear_values", "final_linear"):
        linear(to, f"{name}.{part}", WIDTH, WIDTH)
    if relative:
        to[name + ".relative_positions_embeddings.weight"] = normal(2 * REACH + 1, WIDTH // HEADS, scale=1)


weights = {}
for side in ("encoder", "decoder"):
    weights[f"{side}.embeddings.make_embedding.emb_luts.0.weight"] = normal(len(vocabulary), WIDTH, scale=1)
    norm(weights, f"{side}.layer_norm")
    for i in range(LAYERS):
        layer = f"{side}.{'transformer' if side == 'encoder' else 'transformer_layers'}.{i}"
        attention(weights, layer + ".self_attn", True)
        linear(weights, layer + ".feed_forward.w_1", WIDTH, INNER)
        linear(weights, layer + ".feed_forward.w_2", INNER, WIDTH)
        norm(weights, layer + ".feed_forward.layer_norm")
        if side == "encoder":
            norm(weights, layer + ".layer_norm")
        else:
            attention(weights, layer + ".context_attn", False)
            norm(weights, layer + ".layer_norm_1")
            norm(weights, layer + ".layer_norm_2")
linear(weights, "generator", WIDTH, len(vocabulary))
weights["generator.bias"][3] += 0.5  # so that sentences end

options = types.SimpleNamespace(
    encoder_type="transformer",
    decoder_type="transformer",
    enc_layers=LAYERS,
    dec_layers=LAYERS,
    heads=HEADS,
    position_encoding=False,
    max_relative_positions=REACH,
    pos_ffn_activation_fn="relu",
)
opennmt_py.check_opt(options, num_source_embeddings=1)
spec = opennmt_py._get_model_spec_seq2seq(options, weights, [vocabulary], [vocabulary], num_source_embeddings=1)
spec.validate()
spec.optimize(quantization=quantization)
os.makedirs(output, exist_ok=True)
spec.save(output)
with open(lines, "w", encoding="utf-8") as file:
    for _ in range(50):
        file.write(" ".join(random.choice(vocabulary[4:], size=random.integers(1, 25))) + "\n")
