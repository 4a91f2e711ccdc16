"""The stages of one attention head, by name: each shape predicted, each number checkable.

T queries, S keys (T = S = n in self-attention), d_in width of the input, K head dim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from translate.insight.attention import Kind, piece_names
from translate.model.attention import MultiHeadAttention, SelfAttention, Stages
from translate.model.masks import causal_mask
from translate.model.transformer import AttentionRecord, Transformer
from translate.text.tokenizer import Tokenizer

Shape = tuple[str, ...]

# The lesson's six tokens (Raschka, *Build a Large Language Model (From Scratch)*, chapter 3).
LESSON = {
    "Your": [0.43, 0.15, 0.89],
    "journey": [0.55, 0.87, 0.66],
    "starts": [0.57, 0.85, 0.64],
    "with": [0.22, 0.58, 0.33],
    "one": [0.77, 0.25, 0.10],
    "step": [0.05, 0.80, 0.55],
}
LESSON_SEED = 123


class Rule(NamedTuple):
    """How a stage follows from what comes before it: a matrix product of two shapes, or one shape
    that stays as it is."""

    stage: str
    formula: str
    operands: tuple[Shape, ...]

    @property
    def shape(self) -> Shape:
        """What comes out, by the rule alone: (a, b) @ (b, c) -> (a, c)."""
        if len(self.operands) == 1:
            return self.operands[0]
        (rows, inner), (also_inner, columns) = self.operands
        if inner != also_inner:
            raise ValueError(f"({rows}, {inner}) @ ({also_inner}, {columns}): the inner two differ")
        return rows, columns

    def predict(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape in numbers; `sizes` says what each letter stands for."""
        return tuple(sizes[letter] for letter in self.shape)

    def __str__(self) -> str:
        shapes = [f"({', '.join(shape)})" for shape in self.operands]
        if len(shapes) == 1:
            return f"{shapes[0]} stays"
        return f"{' @ '.join(shapes)} -> ({', '.join(self.shape)})"


def rules(T: str = "n", S: str = "n") -> list[Rule]:  # noqa: N803 (the field's letters)
    """Of all stages after the input, in order; `T` and `S` are the letters of rows and columns."""
    return [
        Rule("queries", "x · W_query", ((T, "d_in"), ("d_in", "K"))),
        Rule("keys", f"{'x' if T == S else 'memory'} · W_key", ((S, "d_in"), ("d_in", "K"))),
        Rule("values", f"{'x' if T == S else 'memory'} · W_value", ((S, "d_in"), ("d_in", "K"))),
        Rule("scores", "queries · keysᵀ", ((T, "K"), ("K", S))),
        Rule("weights", "softmax(scores / √K), row by row", ((T, S),)),
        Rule("context", "weights · values", ((T, S), (S, "K"))),
    ]


@dataclass(frozen=True)
class Trace:
    """One head at work on one sentence: what went in, its matrices, and every stage."""

    rows: list[str]  # names of the T tokens that look
    columns: list[str]  # names of the S tokens looked at
    x: Tensor  # (T, d_in)
    memory: Tensor  # (S, d_in); in self-attention `x` itself
    matrices: tuple[Tensor, Tensor, Tensor]  # of queries, keys and values, (d_in, K) each
    mask: Tensor | None  # (T, S), True: may look there; None: everywhere
    stages: Stages  # queries (T, K), keys and values (S, K), scores, weights (T, S), context (T, K)

    @property
    def rules(self) -> list[Rule]:
        return rules() if self.memory is self.x else rules("T", "S")

    @property
    def sizes(self) -> dict[str, int]:
        """What the letters of the rules stand for here."""
        d_in, K = self.matrices[0].shape
        letters = {"n": len(self.x)}
        if self.memory is not self.x:
            letters = {"T": len(self.x), "S": len(self.memory)}
        return {**letters, "d_in": d_in, "K": K}


@torch.no_grad()
def lesson_trace() -> Trace:
    """The lesson's tokens through its single head: n 6, d_in 3, K 2, without a mask."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(LESSON_SEED)
        head = SelfAttention(3, 2)
    x = torch.tensor(list(LESSON.values()))
    matrices = (head.W_query, head.W_key, head.W_value)
    names = list(LESSON)
    return Trace(names, names, x, x, matrices, None, head.stages(x))


@torch.inference_mode()
def model_trace(
    model: Transformer,
    tokenizer: Tokenizer,
    source: Sequence[int],
    target: Sequence[int],
    *,
    kind: Kind,
    layer: int,
    head: int,
) -> Trace:
    """Head `head` of layer `layer` (both from 0) of a trained model.

    `source` and `target` are ids without bos and eos: the encoder reads `source` and eos, the
    decoder bos and `target`.

    Raises:
        ValueError: the model is in training mode: dropout would change the numbers.
    """
    if model.training:
        raise ValueError("the model is in training mode: call eval() first")
    device = model.embedding.weight.device
    src = torch.tensor([[*source, tokenizer.eos_id]], device=device)
    tgt_in = torch.tensor([[tokenizer.bos_id, *target]], device=device)
    record = AttentionRecord()
    memory, src_mask = model.encode(src, record)
    model.decode(tgt_in, memory, src_mask, record)
    if kind == "encoder":
        residual, recorded = model.encoder[layer].self_attention, record.encoder[layer]
    elif kind == "decoder":
        residual, recorded = model.decoder[layer].self_attention, record.decoder[layer]
    else:
        residual, recorded = model.decoder[layer].cross_attention, record.cross[layer]
    attention = residual.sublayer
    x = recorded.x[0]  # (T, d_in)
    d_k = len(x[0]) // attention.n_heads
    columns = slice(head * d_k, (head + 1) * d_k)
    matrices = tuple(
        matrix.weight[columns].T  # nn.Linear keeps the transposed matrix
        for matrix in (attention.W_query, attention.W_key, attention.W_value)
    )
    stages = Stages(x, *(stage[0, head] for stage in recorded[1:]))
    sources, targets = (piece_names(tokenizer, ids[0].tolist()) for ids in (src, tgt_in))
    return Trace(
        rows=sources if kind == "encoder" else targets,
        columns=targets if kind == "decoder" else sources,
        x=x,
        memory=memory[0] if kind == "cross" else x,
        matrices=matrices,
        mask=causal_mask(len(x), len(x), device=device)[0, 0] if kind == "decoder" else None,
        stages=stages,
    )


def single_token(trace: Trace, row: int) -> dict[str, Tensor]:
    """Every stage of token `row` alone, one number after the other, without tensors or batch.

    The slow and plain way to say what attention is; a row of the batched stages must equal it.
    """

    def project(vector: list[float], matrix: list[list[float]]) -> list[float]:
        return [dot(vector, column) for column in zip(*matrix, strict=True)]

    def dot(a: Sequence[float], b: Sequence[float]) -> float:
        return sum(i * j for i, j in zip(a, b, strict=True))

    w_query, w_key, w_value = (matrix.tolist() for matrix in trace.matrices)
    memory = trace.memory.tolist()
    query = project(trace.x[row].tolist(), w_query)
    keys = [project(token, w_key) for token in memory]
    values = [project(token, w_value) for token in memory]
    scores = [dot(query, key) for key in keys]
    seen = [True] * len(keys) if trace.mask is None else trace.mask[row].tolist()
    highest = max(score for score, visible in zip(scores, seen, strict=True) if visible)
    powers = [
        math.exp((score - highest) / math.sqrt(len(query))) if visible else 0.0
        for score, visible in zip(scores, seen, strict=True)
    ]
    weights = [power / sum(powers) for power in powers]
    context = [dot(weights, column) for column in zip(*values, strict=True)]
    return {
        "queries": torch.tensor(query),
        "keys": torch.tensor(keys),
        "values": torch.tensor(values),
        "scores": torch.tensor(scores),
        "weights": torch.tensor(weights),
        "context": torch.tensor(context),
    }


def row_of(stages: Stages, row: int) -> dict[str, Tensor]:
    """What belongs to query `row` of one head: all keys and values, and its row of the rest."""
    whole = stages._asdict()
    return {
        name: stage if name in ("keys", "values") else stage[row] for name, stage in whole.items()
    }


@torch.no_grad()
def run_stages(
    attention: SelfAttention | MultiHeadAttention,
    x: Tensor,
    memory: Tensor | None = None,
    mask: Tensor | None = None,
) -> dict[str, Tensor]:
    """Every stage of an attention over `x`, and of several heads what is made of them ("output").

    `SelfAttention`: x (n, d_in). `MultiHeadAttention`: x (B, T, d_in), keys and values from
    `memory` (B, S, d_in), without it from `x`.
    """
    if isinstance(attention, SelfAttention):
        return attention.stages(x, mask)._asdict()
    record: list[Stages] = []
    output = attention(x, memory, mask, record=record)
    return {**record[0]._asdict(), "output": output}


class Disagreement(NamedTuple):
    """The first stage in which two attentions differ; what follows from it differs too."""

    stage: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    difference: float | None  # the largest one; None where the shapes differ

    def __str__(self) -> str:
        if self.difference is None:
            return f"{self.stage}: shape {self.shapes[0]} against {self.shapes[1]}"
        return f"{self.stage}: numbers differ by up to {self.difference:.2g}"


def compare_stages(
    a: Mapping[str, Tensor], b: Mapping[str, Tensor], tolerance: float = 1e-4
) -> Disagreement | None:
    """The first stage that disagrees, None if all agree: first all shapes, then the numbers.

    `a` and `b` are the stages of two attentions (`run_stages`), or a row of the batched ones
    (`row_of`) and the same token alone (`single_token`); they name the same stages. The numbers
    may differ by `tolerance`, or by that share of the larger one.
    """
    pairs = [(stage, a[stage].double(), b[stage].double()) for stage in a]
    for stage, one, other in pairs:
        if one.shape != other.shape:
            return Disagreement(stage, (tuple(one.shape), tuple(other.shape)), None)
    for stage, one, other in pairs:
        if not torch.allclose(one, other, rtol=tolerance, atol=tolerance):
            difference = (one - other).abs().max().item()
            return Disagreement(stage, (tuple(one.shape), tuple(other.shape)), difference)
    return None
