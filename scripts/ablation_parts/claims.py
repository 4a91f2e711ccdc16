"""What the lesson claims of each part, and what the results say to it."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import NamedTuple

Result = dict
Results = dict[str, Result]

HOLDS = "It holds"
PARTLY = "**It holds in part**"
SAME = "**No difference is seen**"
FAILS = "**It does not hold here**"
MARGIN = 0.05  # nats a piece of validation loss that count as a difference


class Claim(NamedTuple):
    """One figure's caption: the claim, whether it holds, and the numbers."""

    title: str
    claim: str
    judge: Callable[[Results], str]
    measured: Callable[[Results], str]
    than: str = "baseline"  # the variant that has the part


def caption(name: str, found: Results) -> str:
    """Claim, verdict and figures. A run that diverged has no other figures."""
    claim = CLAIMS[name]
    if stopped := found[name]["stopped"]:
        reason = stopped.split(":")[1].split(";")[0].strip()
        return f"The lesson: {claim.claim} Without the part training diverged ({reason})."
    return f"The lesson: {claim.claim} {claim.judge(found)}: {claim.measured(found)}."


def last(result: Result, tag: str) -> float:
    """The last value of a curve, of training the median of five; NaN if there is none."""
    curve = [value for _, value in result["curves"].get(tag, [])]
    return median(curve[-5 if tag.startswith("train/") else -1 :]) if curve else float("nan")


def bleu(result: Result) -> float:
    return 0.0 if result["stopped"] else last(result, "val/bleu")


def loss(result: Result) -> float:
    """Of validation, nats a piece; a run that diverged has none."""
    return float("inf") if result["stopped"] else last(result, "val/nll")


def _worse(name: str, than: str = "baseline") -> Callable[[Results], str]:
    def judge(found: Results) -> str:
        difference = loss(found[name]) - loss(found[than])
        return SAME if abs(difference) <= MARGIN else HOLDS if difference > 0 else FAILS

    return judge


def _all(*conditions: Callable[[Results], bool]) -> Callable[[Results], str]:
    def judge(found: Results) -> str:
        met = [condition(found) for condition in conditions]
        return HOLDS if all(met) else PARTLY if any(met) else FAILS

    return judge


def _losses(name: str, than: str = "baseline") -> Callable[[Results], str]:
    return lambda found: (
        f"validation loss {loss(found[name]):.2f} and BLEU {bleu(found[name]):.1f}, against "
        f"{loss(found[than]):.2f} and {bleu(found[than]):.1f}"
    )


def _times(name: str, when: str, figure: str) -> Callable[[Results], float]:
    """How many times the baseline's figure before ("start") or after training ("end")."""
    return lambda found: found[name][when][figure] / found["baseline"][when][figure]


def _larger(name: str, when: str, figure: str) -> Callable[[Results], bool]:
    return lambda found: _times(name, when, figure)(found) > 2


def _inside(name: str, when: str) -> Callable[[Results], str]:
    def told(found: Results) -> str:
        without, with_it = found[name][when], found["baseline"][when]
        return (
            f"scores up to {without['largest_score']:.3g} and a residual path of "
            f"{without['residual']:.3g}, against {with_it['largest_score']:.3g} and "
            f"{with_it['residual']:.3g}"
        )

    return told


def _loss_is_worse(name: str) -> Callable[[Results], bool]:
    return lambda found: _worse(name)(found) == HOLDS


def _unchanged(result: Result) -> float:
    return result["unchanged_by_order"] / result["compared"]


CLAIMS: dict[str, Claim] = {
    "no_scaling": Claim(
        "Without 1/√K",
        "Undivided scores make the softmax sharper, and less is learned.",
        _all(
            lambda found: (
                found["no_scaling"]["end"]["evenness"] < found["baseline"]["end"]["evenness"]
            ),
            _loss_is_worse("no_scaling"),
        ),
        lambda found: (
            f"weights have {found['no_scaling']['end']['evenness']:.0%} of the entropy of even "
            f"ones, against {found['baseline']['end']['evenness']:.0%}; "
            + _losses("no_scaling")(found)
        ),
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
        "Without it the residual sum and the scores grow unchecked, and less is learned.",
        _all(
            _larger("no_norm", "end", "residual"),
            _larger("no_norm", "end", "largest_score"),
            _loss_is_worse("no_norm"),
        ),
        lambda found: f"{_inside('no_norm', 'end')(found)}; {_losses('no_norm')(found)}",
    ),
    "no_causal_mask": Claim(
        "No causal mask",
        "Training loss falls far below that of an honest model, and translations are useless.",
        _all(
            lambda found: (
                last(found["no_causal_mask"], "train/nll")
                < last(found["baseline"], "train/nll") / 2
            ),
            lambda found: bleu(found["no_causal_mask"]) < bleu(found["baseline"]) / 4,
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
        _all(
            lambda found: (
                found["no_padding_mask"]["changed_by_neighbours"]
                > 0
                == found["baseline"]["changed_by_neighbours"]
            )
        ),
        lambda found: (
            f"{found['no_padding_mask']['changed_by_neighbours']} of "
            f"{found['no_padding_mask']['compared']} sentences come out otherwise alone than "
            f"together; with the mask {found['baseline']['changed_by_neighbours']}"
        ),
    ),
    "no_positions": Claim(
        "No positions",
        "Without them attention sees a set of words: the order of the source is lost.",
        _all(
            lambda found: (
                _unchanged(found["no_positions"]) > 0.9 and _unchanged(found["baseline"]) < 0.5
            ),
            _loss_is_worse("no_positions"),
        ),
        lambda found: (
            f"with their words shuffled, {found['no_positions']['unchanged_by_order']} of "
            f"{found['no_positions']['compared']} sentences are translated as before, against "
            f"{found['baseline']['unchanged_by_order']}; " + _losses("no_positions")(found)
        ),
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
        _all(
            _larger("careless_init", "start", "residual"),
            _larger("careless_init", "start", "largest_score"),
            _loss_is_worse("careless_init"),
        ),
        lambda found: (
            f"before training {_inside('careless_init', 'start')(found)}; after it "
            + _losses("careless_init")(found)
        ),
    ),
}
VARIANTS = ("baseline", "high_rate", *CLAIMS)
