"""Write the results as one page: page.md, filled with a table, figures and captions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ablation.claims import CLAIMS, FAILS, HOLDS, MARGIN, VARIANTS, numbers, verdict

TEMPLATE = Path(__file__).with_name("page.md")
NEAR = 3  # words between "it" and its noun


def write_page(folder: Path, results: dict[str, Any]) -> Path:
    """Write README.md, its figures and results.json into `folder`; return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results) + "\n", encoding="utf-8")
    variants = results["variants"]
    text = TEMPLATE.read_text(encoding="utf-8").format(
        margin=MARGIN,
        table="\n".join(table_row(name, variants[name]) for name in VARIANTS if name in variants),
        claims="\n\n".join(section(folder, name, variants) for name in CLAIMS if name in variants),
        gradient=gradient(folder / "gradient.png", results["gradient_by_distance"]),
        cost=cost(folder / "cost.png", results["attention_cost"]),
        pronouns=pronouns(folder / "pronouns.png", results["pronouns"]),
    )
    page = folder / "README.md"
    page.write_text(text, encoding="utf-8")
    return page


def table_row(name: str, result: dict[str, Any]) -> str:
    """Return one row of the table."""
    loss, bleu = result["measured"]["validation loss"], result["measured"]["BLEU"]
    value = "diverged" if result["diverged"] else f"{loss:.2f}"
    warnings = ", ".join(f"{text} ({step})" for step, text in result["warnings"])
    return f"| {name} | {value} | {bleu:.1f} | {warnings} |"


def section(folder: Path, name: str, variants: dict[str, Any]) -> str:
    """Plot the losses of a variant and its reference; return the heading, figure and caption."""
    claim, variant, reference = CLAIMS[name], variants[name], variants[CLAIMS[name].reference]
    figure, (axes,) = new_figure()
    for result, colour, label in ((reference, "0.6", claim.reference), (variant, "tab:blue", name)):
        for tag, style in (("val/nll", "o-"), ("train/nll", ":")):
            steps, values = numpy.reshape(result["series"].get(tag, []), (-1, 2)).T
            axes.plot(steps, values, style, color=colour, label=label, markersize=3)
            label = None  # only once in the legend
    axes.set(xlabel="updates", ylabel="loss, nats per piece")
    axes.legend()
    figure.savefig(folder / f"{name}.png")
    if variant["diverged"]:
        caption = f"**{HOLDS}**. Training diverged: {variant['diverged']}."
    else:
        told = numbers(claim, variant, reference)
        caption = f"**{verdict(claim, variant, reference)}**. Measured: {told}."
    heading = f"## {claim.title}\n\n![{claim.title}]({name}.png)"
    return f"{heading}\n\nClaim: {claim.claim} Result: {caption}"


def gradient(path: Path, norms: dict[str, list[float]]) -> dict[str, Any]:
    """Plot the gradient norms by distance; return the numbers of the caption."""
    figure, (axes,) = new_figure()
    plot_lines(axes, {name: (range(len(values)), values) for name, values in norms.items()})
    axes.set(xlabel="tokens between input and last output", ylabel="relative gradient norm")
    axes.set_yscale("log")
    figure.savefig(path)
    attention, gru = norms["self-attention"], norms["GRU"]
    flat = max(attention[1:]) < 3 * min(attention[1:])
    result = HOLDS if flat and gru[-1] < attention[-1] / 100 else FAILS
    return {"result": result, "length": len(gru), "attention": attention[-1], "gru": gru[-1]}


def cost(path: Path, costs: dict[str, dict[str, list[float]]]) -> dict[str, str]:
    """Plot time and memory by length; return the verdict and the fitted exponents."""
    figure, both = new_figure(columns=2)
    fitted = {}
    for axes, key, label in zip(both, ("seconds", "mebibytes"), ("seconds", "MiB"), strict=True):
        plot_lines(axes, {name: (each["lengths"], each[key]) for name, each in costs.items()})
        axes.set(xlabel="tokens n", ylabel=label, xscale="log", yscale="log")
        for name, each in costs.items():
            # The slope between logarithms is p of the fit value = c · n^p.
            points = numpy.log(each["lengths"][-3:]), numpy.log(each[key][-3:])
            fitted[name, key] = numpy.polyfit(*points, 1)[0]
    figure.savefig(path)
    (_, explicit), (_, fused) = [(name, fitted[name, "mebibytes"]) for name in costs]
    told = [
        f"time n^{fitted[name, 'seconds']:.2f} and memory n^{fitted[name, 'mebibytes']:.2f} "
        f"for the {name}"
        for name in costs
    ]
    result = HOLDS if explicit > 1.7 and fused < 1.2 else FAILS
    return {"result": result, "exponents": "; ".join(told)}


def pronouns(path: Path, correct: dict[str, dict[str, list[bool]]]) -> str:
    """Plot the share of correct pronouns by distance; return two sentences about each model."""
    figure, (axes,) = new_figure()
    width = 0.8 / len(correct)
    told = []
    for number, (name, distances) in enumerate(correct.items()):
        shift = width * (number - (len(correct) - 1) / 2)
        places = [int(words) + shift for words in distances]
        bars = axes.bar(places, [fmean(each) for each in distances.values()], width, label=name)
        axes.bar_label(bars, [len(each) for each in distances.values()], fontsize=7)
        near = fmean(ok for words, each in distances.items() for ok in each if int(words) <= NEAR)
        far = fmean(ok for words, each in distances.items() for ok in each if int(words) > NEAR)
        told.append(
            f"Result for the {name} model: **{HOLDS if far > near - 0.1 else FAILS}**. Measured: "
            f"{near:.0%} correct with up to {NEAR} words between, {far:.0%} with more"
        )
    axes.set(xlabel='words between "it" and its noun', ylabel="share of correct pronouns")
    axes.set_ylim(0, 1.1)
    axes.legend(loc="upper center")
    figure.savefig(path)
    return ". ".join(told)


def plot_lines(axes: Axes, lines: dict[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    """Plot each line, given as x and y, with its name in the legend."""
    for name, (x, y) in lines.items():
        axes.plot(x, y, "o-", label=name, markersize=3)
    axes.legend()


def new_figure(columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure with one or more panels side by side."""
    figure = Figure(figsize=(5.5 * columns, 3.2), dpi=100, layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False).ravel())
