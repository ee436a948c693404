#!/usr/bin/env python3
"""PyTorch's time for the update that `starling bench train` measures: the same model, lengths, dropout and Adam; bf16 autocast, scaled
dot-product attention, padded batches. Prints one line of JSON. --device cpu --tiny tries it without a card."""
import argparse
import json
import math
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--preset", default="transformer-big")
parser.add_argument("--batch-tokens", type=int, default=25000)
parser.add_argument("--vocabulary", type=int, default=32000)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--device", default="cuda")
parser.add_argument("--tiny", action="store_true")
o = parser.parse_args()
WIDTH, HIDDEN, HEADS, LAYERS, DROPOUT = {"transformer-big": (1024, 4096, 16, 6, 0.3), "transformer-base": (512, 2048, 8, 6, 0.1)}[o.preset]
if o.tiny:
    WIDTH, HIDDEN, HEADS, LAYERS = 64, 128, 4, 2
    o.batch_tokens, o.vocabulary, o.seconds = 400, 1000, 0.5
device = torch.device(o.device)
cuda = device.type == "cuda"
torch.manual_seed(1)
random.seed(1)
if cuda:
    torch.backends.cuda.matmul.allow_tf32 = True


class Attention(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.cross = cross
        self.q = nn.Linear(WIDTH, WIDTH if cross else 3 * WIDTH)
        self.kv = nn.Linear(WIDTH, 2 * WIDTH) if cross else None
        self.out = nn.Linear(WIDTH, WIDTH)

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x, memory, mask, causal):
        q, k, v = (self.q(x), *self.kv(memory).chunk(2, -1)) if self.cross else self.q(x).chunk(3, -1)
        y = F.scaled_dot_product_attention(self.heads(q), self.heads(k), self.heads(v), attn_mask=mask, is_causal=causal)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.own = Attention(False)
        self.cross = Attention(True) if decoder else None
        self.hidden, self.out = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if decoder else 2))
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x, mask, memory=None, causal=False):
        h = self.norms[0](x)
        x = x + self.drop(self.own(h, h, None if causal else mask, causal))
        if self.cross is not None:
            x = x + self.drop(self.cross(self.norms[1](x), memory, mask, False))
        return x + self.drop(self.out(F.relu(self.hidden(self.norms[-1](x)))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(o.vocabulary, WIDTH)
        nn.init.normal_(self.table.weight, std=WIDTH ** -0.5)
        self.encoder = nn.ModuleList(Layer(False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(True) for _ in range(LAYERS))
        self.encoder_norm, self.decoder_norm, self.drop = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.Dropout(DROPOUT)
        angles = torch.arange(512).float()[:, None] / 10000 ** (torch.arange(WIDTH // 2).float() / (WIDTH // 2))
        self.register_buffer("signal", torch.cat([angles.sin(), angles.cos()], 1))

    def embed(self, tokens):
        return self.drop(self.table(tokens) * math.sqrt(WIDTH) + self.signal[: tokens.shape[1]])

    def forward(self, source, target_in, target, mask):
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, mask)
        memory, y = self.encoder_norm(x), self.embed(target_in)
        for layer in self.decoder:
            y = layer(y, mask, memory, True)
        rows = (target >= 0).flatten().nonzero().squeeze(1)  # padding has no loss
        h = self.decoder_norm(y).flatten(0, 1).index_select(0, rows)
        logits = F.linear(h, self.table.weight).float()
        return F.cross_entropy(logits, target.flatten().index_select(0, rows), label_smoothing=0.1, reduction="sum")


def batches_of_lengths():
    """As synthetic_batches() of src/measure/bench.cpp makes them: eight batches of sentences of like lengths."""
    lengths, tokens = [], 0
    while tokens < 8 * o.batch_tokens:
        target = min(max(round(28 * math.exp(0.5 * random.gauss(0, 1) - 0.125)), 2), 100)
        lengths.append((target, min(max(round(target * (0.8 + 0.4 * random.random())), 2), 100)))
        tokens += target
    batches, batch = [], []
    for pair in sorted(lengths):
        if sum(target for target, _ in batch) + pair[0] > o.batch_tokens:
            batches.append(batch)
            batch = []
        batch.append(pair)
    if sum(target for target, _ in batch) >= o.batch_tokens / 2:
        batches.append(batch)
    random.shuffle(batches)
    return batches


def tensors(batch):
    longest_target, longest_source = (max(pair[i] for pair in batch) + 7 & ~7 for i in (0, 1))  # fewer shapes
    source = torch.zeros(len(batch), longest_source, dtype=torch.long)
    target = torch.full((len(batch), longest_target), -1)
    for row, (t, s) in enumerate(batch):
        source[row, :s] = torch.randint(3, o.vocabulary, (s,))
        target[row, :t] = torch.randint(3, o.vocabulary, (t,))
    target_in = torch.cat([torch.ones(len(batch), 1, dtype=torch.long), target[:, :-1].clamp(min=0)], 1)
    mask = (torch.arange(longest_source)[None] < torch.tensor([s for _, s in batch])[:, None])[:, None, None, :]
    return [x.to(device) for x in (source, target_in, target, mask)], sum(t for t, _ in batch)


def wait():
    if cuda:
        torch.cuda.synchronize()


data = [tensors(batch) for batch in batches_of_lengths()]
model = Model().to(device)
model.train()
run = torch.compile(model) if o.compile else model
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=cuda)


def update(inputs, tokens):
    with torch.autocast(device.type, torch.bfloat16):
        loss = run(*inputs)
    (loss / tokens).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


begin = time.time()
for batch in data:
    update(*batch)
wait()
warm_up = time.time() - begin
updates, tokens, begin = 0, 0, time.time()
while updates == 0 or time.time() - begin < o.seconds:
    for batch in data:
        update(*batch)
        updates += 1
        tokens += batch[1]
    wait()
elapsed = time.time() - begin
print(json.dumps({"peer": "pytorch " + torch.__version__, "compiled": o.compile, "preset": o.preset,
                  "target_tokens_per_second": tokens / elapsed, "step_ms": 1e3 * elapsed / updates, "steps": updates,
                  "warm_up_s": round(warm_up, 1), "parameters": sum(p.numel() for p in model.parameters()),
                  "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if cuda else 0}))
