"""A Qwen3 model of one layer, computed with lists of numbers."""

import functools
import json
import os
import struct
from math import cos, exp, sin, sqrt
from operator import mul


def load_tensors(path):
    """Reads the BF16 tensors of a safetensors file: name -> list of sparse rows."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        begin, end = tensor["data_offsets"]
        # A BF16 number is the upper half of the float32.
        wide = b"".join(b"\0\0" + data[i : i + 2] for i in range(begin, end, 2))
        values = struct.unpack("<%df" % (len(wide) // 4), wide)
        width = tensor["shape"][-1]
        rows = [values[i : i + width] for i in range(0, len(values), width)]
        tensors[name] = [[(i, v) for i, v in enumerate(row) if v] for row in rows]
    return tensors


def product(rows, x):
    return [sum(v * x[i] for i, v in row) for row in rows]


def dense(row, width):
    x = [0.0] * width
    for i, v in row:
        x[i] = v
    return x


def dot(a, b):
    return sum(map(mul, a, b))


def normalized(x, weight):
    scale = 1 / sqrt(dot(x, x) / len(x) + 1e-6)
    return [v * scale * w for v, w in zip(x, weight)]


def rotated(x, angles):
    half = len(angles)
    out = list(x)
    for i, (c, s) in enumerate(angles):
        out[i] = x[i] * c - x[i + half] * s
        out[i + half] = x[i + half] * c + x[i] * s
    return out


class Model:
    def __init__(self, folder):
        with open(os.path.join(folder, "config.json")) as file:
            self.config = json.load(file)
        tensors = load_tensors(os.path.join(folder, "model.safetensors"))
        self.hidden = self.config["hidden_size"]
        self.embedding = tensors["model.embed_tokens.weight"]
        self.head = tensors.get("lm_head.weight", self.embedding)
        self.final = dense(tensors["model.norm.weight"][0], self.hidden)
        layer = "model.layers.0."
        self.rows = {n[len(layer) : -len(".weight")]: t for n, t in tensors.items() if n.startswith(layer)}
        self.size = self.config["head_dim"]
        widths = {"q_norm": self.size, "k_norm": self.size}
        self.norms = {n: dense(t[0], widths.get(n[-6:], self.hidden)) for n, t in self.rows.items() if "norm" in n}
        half = self.size // 2
        self.frequencies = [self.config["rope_theta"] ** (-i / half) for i in range(half)]

        self.angles = functools.cache(self.angles)
        self.project = functools.cache(self.project)

    def norm(self, name, x):
        return normalized(x, self.norms[name])

    def heads(self, name, y):
        flat = product(self.rows["self_attn." + name], y)
        return [flat[i : i + self.size] for i in range(0, len(flat), self.size)]

    def angles(self, position):
        return [(cos(position * f), sin(position * f)) for f in self.frequencies]

    def project(self, token):
        """What a token is before attention, wherever it stands: residual stream, queries, keys and values of each head."""
        x = dense(self.embedding[token], self.hidden)
        y = self.norm("input_layernorm", x)
        queries = [self.norm("self_attn.q_norm", h) for h in self.heads("q_proj", y)]
        keys = [self.norm("self_attn.k_norm", h) for h in self.heads("k_proj", y)]
        return x, queries, keys, self.heads("v_proj", y)

    def extend(self, cache, token, position):
        """Appends a token's keys and values to the cache; returns what logits needs of it."""
        x, queries, keys, values = self.project(token)
        angles = self.angles(position)
        cache.append(([rotated(k, angles) for k in keys], values))
        return x, [rotated(q, angles) for q in queries]

    def logits(self, cache, mask, x, queries):
        """The logits after the last token; mask[i] is false where cache[i] is not to be seen."""
        out = []
        for h, query in enumerate(queries):
            scores = [dot(query, keys[h]) / sqrt(self.size) for keys, _ in cache]
            weights = [exp(s) if seen else 0.0 for s, seen in zip(scores, mask)]
            total = sum(weights)
            out += [dot(weights, column) / total for column in zip(*(values[h] for _, values in cache))]
        x = [a + b for a, b in zip(x, product(self.rows["self_attn.o_proj"], out))]
        y = self.norm("post_attention_layernorm", x)
        gate, up = product(self.rows["mlp.gate_proj"], y), product(self.rows["mlp.up_proj"], y)
        x = [a + b for a, b in zip(x, product(self.rows["mlp.down_proj"], [g / (1 + exp(-g)) * u for g, u in zip(gate, up)]))]
        return product(self.head, normalized(x, self.final))
