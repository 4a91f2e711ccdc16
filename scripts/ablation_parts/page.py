"""The results as one page: figures with captions, and a table."""

from __future__ import annotations

import json
import math
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ablation_parts.claims import CLAIMS, FAILS, HOLDS, MARGIN, bleu, caption, loss


def write_page(folder: Path, results: dict[str, dict]) -> Path:
    """Write README.md, its pictures and results.json into `folder`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results) + "\n")
    shown = [name for name in CLAIMS if name in results]
    lines = [
        "# What each part is for",
        "",
        "Made by `python scripts/ablations.py` (with `--model RUN`, the last figure shows a fully "
        "trained model too). Every variant is the same small model "
        "(`configs/ablation/baseline.yaml`) with one thing changed or taken away, trained for "
        "the same number of updates, with the same seed and no other: enough to see what a part "
        f"does, not how it ends. Validation losses within {MARGIN} count as equal. Solid: "
        "validation loss, dotted: training loss, nats a piece; grey: the model with the part.",
        "",
        "| | validation loss | BLEU | alarms while training (and the update) |",
        "|---|---:|---:|---|",
    ]
    for name, result in results.items():
        if "curves" not in result:
            continue
        value = f"{loss(result):.2f}" if math.isfinite(loss(result)) else "diverged"
        alarms = [alarm.split(": ", 3) for alarm in result["alarms"]]  # health: step N: what: why
        told = [f"{what.split(':')[0]} ({step.split()[1]})" for _, step, what, *_ in alarms]
        lines.append(f"| {name} | {value} | {bleu(result):.1f} | {', '.join(told)} |")
    for name in shown:
        _save(_curves(results, name), folder / f"{name}.png")
        title = CLAIMS[name].title
        lines += ["", f"## {title}", "", f"![Loss, {title}]({name}.png)", ""]
        lines.append(caption(name, results))
    lines += _paths(folder, results["gradient paths"])
    lines += _cost(folder, results["cost"])
    lines += _distance(folder, results["pronouns"])
    page = folder / "README.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def _figure(columns: int = 1) -> tuple[Figure, list]:
    figure = Figure(figsize=(5.5 * columns, 3.2), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, columns, squeeze=False).ravel())


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="png")


def _curves(results: dict[str, dict], name: str) -> Figure:
    figure, (axes,) = _figure()
    for which, colour in ((CLAIMS[name].than, "0.6"), (name, "tab:blue")):
        for tag, style in (("val/nll", "o-"), ("train/nll", ":")):
            curve = results[which]["curves"].get(tag, [])
            steps, values = zip(*curve, strict=True) if curve else ((), ())
            label = which.replace("_", " ") if style == "o-" else None
            axes.plot(steps, values, style, color=colour, label=label, markersize=3)
    axes.set(xlabel="updates", ylabel="nats a piece")
    axes.legend()
    return figure


def _paths(folder: Path, found: dict[str, list[float]]) -> list[str]:
    figure, (axes,) = _figure()
    for name, norms in found.items():
        axes.plot(range(len(norms)), norms, label=name)
    axes.set(xlabel="tokens between input and last output", ylabel="gradient, 1 at distance 0")
    axes.set_yscale("log")
    axes.legend()
    _save(figure, folder / "paths.png")
    far = len(found["GRU"]) - 1
    ours, gru = found["self-attention"][far], found["GRU"][far]
    flat = max(found["self-attention"][1:]) / min(found["self-attention"][1:])
    verdict = HOLDS if flat < 3 and gru < ours / 100 else FAILS
    return [
        "",
        "## How far a gradient reaches",
        "",
        "![Gradient by distance](paths.png)",
        "",
        "The lesson: in self-attention every token is one step from every other one, in a "
        "recurrent net as many steps as lie between, and the gradient fades on the way. "
        f"{verdict}: from the first of {far + 1} tokens to the last output it is {ours:.2g} times "
        f"that of the last token in self-attention and {gru:.2g} times in a GRU of the same width, "
        "both untrained, initialised as PyTorch and this program do; self-attention does not "
        "fade, but it shares its gradient among all tokens.",
    ]


def _cost(folder: Path, found: dict[str, dict]) -> list[str]:
    figure, (left, right) = _figure(2)
    for path, each in found.items():
        left.plot(each["lengths"], each["seconds"], "o-", label=path, markersize=3)
        right.plot(each["lengths"], each["mebibytes"], "o-", label=path, markersize=3)
        time, memory = each["exponents"]
        each["told"] = f"time n^{time:.2f} and memory n^{memory:.2f}"
    left.set(xlabel="tokens n", ylabel="seconds", xscale="log", yscale="log")
    right.set(xlabel="tokens n", ylabel="MiB kept for the gradient", xscale="log", yscale="log")
    left.legend()
    _save(figure, folder / "cost.png")
    (_, quadratic), (_, linear) = found["explicit"]["exponents"], found["fused"]["exponents"]
    verdict = HOLDS if quadratic > 1.7 and linear < 1.2 else FAILS
    return [
        "",
        "## What attention costs",
        "",
        "![Cost of attention](cost.png)",
        "",
        "The lesson: every token is compared with every other one, so time and memory grow with "
        "n²; a kernel that never builds the (n, n) matrices needs memory for n only. "
        f"{verdict}: fitted to the three longest, explicit attention takes "
        f"{found['explicit']['told']}, the fused kernel {found['fused']['told']}.",
    ]


def _distance(folder: Path, found: dict[str, list[dict]]) -> list[str]:
    """`found`, by model: {"words": between "it" and its noun, "right": share, "count"}."""
    figure, (axes,) = _figure()
    width = 0.8 / len(found)
    for i, (name, bars) in enumerate(found.items()):
        places = [bar["words"] + width * (i - (len(found) - 1) / 2) for bar in bars]
        axes.bar(places, [bar["right"] for bar in bars], width, label=name)
        for place, bar in zip(places, bars, strict=True):
            axes.text(place, bar["right"], bar["count"], ha="center", va="bottom", fontsize=7)
    axes.set(xlabel='words between "it" and its noun', ylabel="share with the right pronoun")
    axes.set_ylim(0, 1.1)
    axes.legend(loc="upper center")
    _save(figure, folder / "distance.png")

    def share(bars: list[dict]) -> float:
        count = sum(bar["count"] for bar in bars)
        return sum(bar["right"] * bar["count"] for bar in bars) / count if count else math.nan

    lines = [
        "",
        "## Pronouns by distance",
        "",
        "![Pronouns by distance](distance.png)",
        "",
        "The lesson: attention reaches a distant word as easily as a near one. The figures over "
        "the bars count sentences. There are three pronouns to choose from, and the near noun is "
        "mostly the object, the far one the subject.",
    ]
    for name, bars in found.items():
        near = share([bar for bar in bars if bar["words"] <= 3])
        far = share([bar for bar in bars if bar["words"] > 3])
        verdict = HOLDS if far > near - 0.1 else "**It does not hold**"
        lines[-1] += (
            f" {verdict} for the {name} model: up to three words away {near:.0%} of the pronouns "
            f"are right, beyond {far:.0%}."
        )
    return lines
