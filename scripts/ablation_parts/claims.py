"""What the lesson claims of each part, and what the results say to it."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import NamedTuple

Result = dict


class Claim(NamedTuple):
    """One figure's caption: the claim, whether it holds, and the numbers."""

    title: str
    claim: str
    holds: Callable[[dict[str, Result]], bool]
    measured: Callable[[dict[str, Result]], str]
    than: str = "baseline"  # the variant that has the part


def last(result: Result, tag: str) -> float:
    """The last value of a curve, of training the median of five; NaN if there is none."""
    curve = [value for _, value in result["curves"].get(tag, [])]
    return median(curve[-5 if tag.startswith("train/") else -1 :]) if curve else float("nan")


def first(result: Result, tag: str) -> float:
    return result["curves"][tag][0][1]


def bleu(result: Result) -> float:
    return 0.0 if result["stopped"] else last(result, "val/bleu")


def loss(result: Result) -> float:
    """Of validation, nats a piece; a run that diverged has none."""
    return float("inf") if result["stopped"] else last(result, "val/nll")


def _worse(name: str, than: str = "baseline", by: float = 0.05) -> Callable[[dict], bool]:
    return lambda found: loss(found[name]) > loss(found[than]) + by


def _losses(name: str, than: str = "baseline") -> Callable[[dict], str]:
    def told(found: dict[str, Result]) -> str:
        stopped = found[name]["stopped"]
        with_it, without = found[than], found[name]
        if stopped:
            return f"it diverged ({stopped.split(':')[1].split(';')[0].strip()})"
        return (
            f"validation loss {loss(without):.2f} and BLEU {bleu(without):.1f}, against "
            f"{loss(with_it):.2f} and {bleu(with_it):.1f}"
        )

    return told


CLAIMS: dict[str, Claim] = {
    "no_scaling": Claim(
        "Without 1/√K",
        "Undivided scores make the softmax all or nothing, and little gradient passes.",
        _worse("no_scaling"),
        _losses("no_scaling"),
    ),
    "no_warmup": Claim(
        "A high rate without warmup",
        "From the first update on, a rate that is fine after a warmup diverges or learns less.",
        _worse("no_warmup", "high_rate"),
        _losses("no_warmup", "high_rate"),
        than="high_rate",
    ),
    "post_norm": Claim(
        "LayerNorm after the sum (post-norm)",
        "At the same rate and warmup the original order learns more slowly than pre-norm.",
        _worse("post_norm"),
        _losses("post_norm"),
    ),
    "no_norm": Claim(
        "No LayerNorm",
        "Without it the residual sum and the scores grow unchecked, and learning suffers.",
        _worse("no_norm"),
        _losses("no_norm"),
    ),
    "no_causal_mask": Claim(
        "No causal mask",
        "Training loss falls far below that of an honest model, and translations are useless.",
        lambda found: (
            last(found["no_causal_mask"], "train/nll") < last(found["baseline"], "train/nll") / 2
            and bleu(found["no_causal_mask"]) < bleu(found["baseline"]) / 4
        ),
        lambda found: (
            f"training loss {last(found['no_causal_mask'], 'train/nll'):.3f} against "
            f"{last(found['baseline'], 'train/nll'):.3f}, BLEU "
            f"{bleu(found['no_causal_mask']):.1f} against {bleu(found['baseline']):.1f}"
        ),
    ),
    "no_padding_mask": Claim(
        "No padding mask",
        "A translation then depends on the sentences that happen to share its batch.",
        lambda found: (
            found["no_padding_mask"]["changed_by_neighbours"] > 0
            and found["baseline"]["changed_by_neighbours"] == 0
        ),
        lambda found: (
            f"{found['no_padding_mask']['changed_by_neighbours']} of "
            f"{found['no_padding_mask']['compared']} sentences come out otherwise alone than "
            f"together; with the mask {found['baseline']['changed_by_neighbours']}"
        ),
    ),
    "no_positions": Claim(
        "No positions",
        "Without them attention sees a set of words, and the order of the source is lost.",
        lambda found: bleu(found["no_positions"]) < bleu(found["baseline"]) - 5,
        _losses("no_positions"),
    ),
    "one_head": Claim(
        "One head instead of four",
        "One head can look at one kind of thing at a time, so it learns less.",
        _worse("one_head"),
        _losses("one_head"),
    ),
    "no_residual": Claim(
        "No residual path",
        "Each layer replaces what it got: signal and gradient fade, and deep models do not learn.",
        _worse("no_residual"),
        _losses("no_residual"),
    ),
    "careless_init": Claim(
        "Ten times the variance at the start",
        "Activations and scores start far too large, and the lost ground is felt to the end.",
        _worse("careless_init"),
        lambda found: (
            f"first loss {first(found['careless_init'], 'train/nll'):.1f} against "
            f"{first(found['baseline'], 'train/nll'):.1f}; at the end "
            + _losses("careless_init")(found)
        ),
    ),
}
VARIANTS = ("baseline", "high_rate", *CLAIMS)
