"""What textbooks claim about each part of the model, and when a measurement supports the claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

HOLDS = "it holds"
PARTLY = "it holds in part"
SAME = "no difference was measured"
FAILS = "it does not hold here"
MARGIN = 0.05  # larger differences of the validation loss, in nats per piece, count

Result = dict[str, Any]  # what `train_variant` returns; numbers by name under "measured"
# Takes the number of the variant and that of the reference; returns whether the claim is supported.
Expectation = Callable[[float, float], bool]


class Claim(NamedTuple):
    """A claim about a variant, and the reference, which is trained with the missing part."""

    title: str
    claim: str
    expected: dict[str, Expectation | None]  # by the name of a number; None: show the number only
    reference: str = "baseline"


def verdict(claim: Claim, variant: Result, reference: Result) -> str:
    """Say whether the measurements meet all, some or none of the claim's expectations."""
    a, b = variant["measured"], reference["measured"]
    met = [expected(a[name], b[name]) for name, expected in claim.expected.items() if expected]
    if any(met):
        return HOLDS if all(met) else PARTLY
    return SAME if abs(a["validation loss"] - b["validation loss"]) <= MARGIN else FAILS


def numbers(claim: Claim, variant: Result, reference: Result) -> str:
    """List the claim's numbers for the variant and, in brackets, for the reference."""
    a, b = variant["measured"], reference["measured"]
    return "; ".join(f"{name} {a[name]:.2f} ({b[name]:.2f})" for name in claim.expected)


def is_twice(variant: float, reference: float) -> bool:
    """Return whether the number is more than twice that of the reference."""
    return variant > 2 * reference


LEARNS_LESS: dict[str, Expectation | None] = {
    "validation loss": lambda variant, reference: variant > reference + MARGIN,
    "BLEU": None,
}

CLAIMS: dict[str, Claim] = {
    "no_scaling": Claim(
        "No scaling by 1/√d_k",
        "without the division, large scores saturate the softmax, and the model learns less.",
        {"attention entropy / maximum": lambda a, b: a < b, **LEARNS_LESS},
    ),
    "no_warmup": Claim(
        "A high learning rate without warmup",
        "a learning rate that works after a warmup diverges or learns less without it.",
        LEARNS_LESS,
        reference="high_rate",
    ),
    "post_norm": Claim(
        "LayerNorm after the sum (post-norm)",
        "with the same learning rate and warmup, post-norm learns more slowly than pre-norm.",
        LEARNS_LESS,
    ),
    "no_norm": Claim(
        "No LayerNorm",
        "the residual stream and the scores grow without limit, and the model learns less.",
        {"RMS of the residual stream": is_twice, "largest score": is_twice, **LEARNS_LESS},
    ),
    "no_causal_mask": Claim(
        "No causal mask",
        "the training loss falls far below that of the reference, and translations are useless.",
        {"training loss": lambda a, b: a < b / 2, "BLEU": lambda a, b: a < b / 4},
    ),
    "no_padding_mask": Claim(
        "No padding mask",
        "a translation depends on the other sentences in its batch.",
        {"share of translations that change in a batch": lambda a, b: a > 0 and b == 0},
    ),
    "no_positions": Claim(
        "No position codes",
        "attention sees a set of words, so the order of the source is lost.",
        {
            "share of translations that stay when words are shuffled": (
                lambda a, b: a > 0.9 and b < 0.5
            ),
            **LEARNS_LESS,
        },
    ),
    "one_head": Claim(
        "One head instead of four",
        "a single head can attend to one kind of token at a time, so the model learns less.",
        LEARNS_LESS,
    ),
    "no_residual": Claim(
        "No residual connections",
        "signal and gradient become weaker in each layer, and a deep model does not learn.",
        LEARNS_LESS,
    ),
    "large_init": Claim(
        "Ten times the variance at initialisation",
        "activations and scores start far too large, and the model has learned less by the end.",
        {
            "initial RMS of the residual stream": is_twice,
            "initial largest score": is_twice,
            **LEARNS_LESS,
        },
    ),
}
VARIANTS = ("baseline", "high_rate", *CLAIMS)
