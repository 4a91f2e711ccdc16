"""The stages of one attention head by name, to predict each shape and check each number.

T queries, S keys (T = S = n in self-attention), d_in width of the input, d_k head width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from translate.insight.attention import Kind, forward_pass, pieces
from translate.model.attention import MultiHeadAttention, SelfAttention, Stages
from translate.model.masks import causal_mask
from translate.model.transformer import Transformer
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
    """How a stage is computed, and the shapes of its operands. Softmax has a single operand."""

    stage: str
    formula: str
    operands: tuple[Shape, ...]

    @property
    def shape(self) -> Shape:
        """The shape of the stage, from the rule alone: (a, b) @ (b, c) -> (a, c)."""
        if len(self.operands) == 1:
            return self.operands[0]
        (rows, inner), (inner_too, columns) = self.operands
        if inner != inner_too:
            raise ValueError(f"({rows}, {inner}) @ ({inner_too}, {columns}): inner sizes differ")
        return rows, columns

    def predict(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape in numbers; `sizes` maps each letter to its number."""
        return tuple(sizes[letter] for letter in self.shape)

    def __str__(self) -> str:
        operands = " @ ".join(f"({', '.join(shape)})" for shape in self.operands)
        return f"{operands} -> ({', '.join(self.shape)})"


def rules(T: str = "n", S: str = "n") -> list[Rule]:  # noqa: N803 (the field's letters)
    """Return the rules of all stages after the input; T and S name the numbers of queries and keys.

    Without arguments these are the rules of self-attention, where the memory is `x`.
    """
    memory = "x" if T == S else "memory"
    return [
        Rule("queries", "x · W_query", ((T, "d_in"), ("d_in", "d_k"))),
        Rule("keys", f"{memory} · W_key", ((S, "d_in"), ("d_in", "d_k"))),
        Rule("values", f"{memory} · W_value", ((S, "d_in"), ("d_in", "d_k"))),
        Rule("scores", "queries · keysᵀ", ((T, "d_k"), ("d_k", S))),
        Rule("weights", "softmax(scores / √d_k), row by row", ((T, S),)),
        Rule("context", "weights · values", ((T, S), (S, "d_k"))),
    ]


@dataclass(frozen=True)
class Trace:
    """One attention head on one sentence: its labels, inputs, matrices, and all stages."""

    rows: list[str]  # names of the T tokens that attend
    columns: list[str]  # names of the S tokens attended to
    memory: Tensor  # (S, d_in); in self-attention it is the same object as `x`
    matrices: Sequence[Tensor]  # W_query, W_key, W_value, each (d_in, d_k)
    mask: Tensor | None  # (T, S), True: may attend; None: every token may attend to every token
    stages: Stages  # x (T, d_in), queries (T, d_k), keys and values (S, d_k), scores (T, S), ...

    @property
    def x(self) -> Tensor:
        """The input of the attention, (T, d_in)."""
        return self.stages.x

    @property
    def letters(self) -> tuple[str, str]:
        """The letters for the numbers of queries and keys; in self-attention both are n."""
        return ("n", "n") if self.memory is self.x else ("T", "S")

    @property
    def rules(self) -> list[Rule]:
        return rules(*self.letters)

    @property
    def sizes(self) -> dict[str, int]:
        """The number that each letter of the rules stands for."""
        (queries, keys), (d_in, d_k) = self.letters, self.matrices[0].shape
        return {queries: len(self.x), keys: len(self.memory), "d_in": d_in, "d_k": d_k}


@torch.no_grad()
def lesson_trace() -> Trace:
    """Trace the lesson's tokens through its single head: n 6, d_in 3, d_k 2, without a mask."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(LESSON_SEED)
        head = SelfAttention(3, 2)
    stages = head.stages(torch.tensor(list(LESSON.values())))
    names = list(LESSON)
    return Trace(names, names, stages.x, (head.W_query, head.W_key, head.W_value), None, stages)


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
    """Trace one head of a trained model; `layer` and `head` count from 0.

    The encoder reads `source` and eos, the decoder reads bos and `target`.

    Raises:
        ValueError: the model is in training mode, where dropout changes the numbers.
    """
    seen = forward_pass(model, tokenizer, source, target)
    block = (model.encoder if kind == "encoder" else model.decoder)[layer]
    attention = (block.cross_attention if kind == "cross" else block.self_attention).sublayer
    x, *by_head = getattr(seen.record, kind)[layer]  # x (1, T, d_in), the others (1, H, ...)
    stages = Stages(x[0], *(stage[0, head] for stage in by_head))
    source_names = [piece.text for piece in pieces(tokenizer, seen.src)]
    target_names = [piece.text for piece in pieces(tokenizer, seen.tgt_in)]
    return Trace(
        rows=source_names if kind == "encoder" else target_names,
        columns=target_names if kind == "decoder" else source_names,
        memory=seen.memory[0] if kind == "cross" else stages.x,
        matrices=[
            # nn.Linear stores (d_out, d_in): a head has rows here, and columns in x · W.
            linear.weight.unflatten(0, (attention.n_heads, -1))[head].T
            for linear in (attention.W_query, attention.W_key, attention.W_value)
        ],
        mask=causal_mask(len(stages.x), device=x.device)[0, 0] if kind == "decoder" else None,
        stages=stages,
    )


def single_token(trace: Trace, row: int) -> dict[str, Tensor]:
    """Compute every stage for token `row` alone, with Python numbers instead of matrices.

    The row of this token in the batched stages must have the same numbers.
    """

    def dot(a: Sequence[float], b: Sequence[float]) -> float:
        return sum(i * j for i, j in zip(a, b, strict=True))

    def project(vector: list[float], matrix: list[list[float]]) -> list[float]:
        return [dot(vector, column) for column in zip(*matrix, strict=True)]

    w_query, w_key, w_value = (matrix.tolist() for matrix in trace.matrices)
    memory = trace.memory.tolist()
    query = project(trace.x[row].tolist(), w_query)
    keys = [project(token, w_key) for token in memory]
    values = [project(token, w_value) for token in memory]
    scores = [dot(query, key) for key in keys]
    allowed = [True] * len(keys) if trace.mask is None else trace.mask[row].tolist()
    scaled = [
        score / math.sqrt(len(query)) if may else -math.inf
        for score, may in zip(scores, allowed, strict=True)
    ]
    powers = [math.exp(score - max(scaled)) for score in scaled]
    weights = [power / sum(powers) for power in powers]
    context = project(weights, values)
    stages = (query, keys, values, scores, weights, context)
    return {rule.stage: torch.tensor(stage) for rule, stage in zip(rules(), stages, strict=True)}


def row_of(stages: Stages, row: int) -> dict[str, Tensor]:
    """Return the stages of query `row`: all keys and values, and one row of each other stage.

    The input x is left out, as in `single_token`.
    """
    of_row = stages._asdict()
    del of_row["x"]
    for name in ("queries", "scores", "weights", "context"):
        of_row[name] = of_row[name][row]
    return of_row


@torch.no_grad()
def run_stages(
    attention: SelfAttention | MultiHeadAttention,
    x: Tensor,
    memory: Tensor | None = None,
    mask: Tensor | None = None,
) -> dict[str, Tensor]:
    """Return every stage of an attention by name, and the "output" of multi-head attention.

    Args:
        attention: the lesson's `SelfAttention`, or `MultiHeadAttention`.
        x: (n, d_in) for `SelfAttention`, (B, T, D) for `MultiHeadAttention`.
        memory: (B, S, D), only for `MultiHeadAttention`; by default `x`.
        mask: (n, n), or broadcastable to (B, H, T, S); boolean, True: may attend.
    """
    if isinstance(attention, SelfAttention):
        return attention.stages(x, mask)._asdict()
    record: list[Stages] = []
    output = attention(x, memory, mask, record=record)
    return {**record[0]._asdict(), "output": output}


def compare_stages(
    a: Mapping[str, Tensor], b: Mapping[str, Tensor], tolerance: float = 1e-4
) -> str | None:
    """Return the first stage in which `a` and `b` differ, and how; None if all stages agree.

    All shapes are compared first, then all numbers. Later stages are computed from earlier ones, so
    the first stage that differs contains the error.

    Args:
        a: stages by name, from `run_stages`, `row_of` or `single_token`.
        b: the same stages of another implementation.
        tolerance: allowed difference of two numbers, absolute and relative to the second number.
    """
    for stage in a:
        if a[stage].shape != b[stage].shape:
            return f"{stage}: shape {tuple(a[stage].shape)} against {tuple(b[stage].shape)}"
    for stage in a:
        one, other = a[stage].double(), b[stage].double()
        if not torch.allclose(one, other, rtol=tolerance, atol=tolerance):
            return f"{stage}: numbers differ by up to {(one - other).abs().max():.2g}"
    return None
