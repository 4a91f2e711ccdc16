"""Tags of the monitor's values, and TensorBoard charts that combine several curves.

Tags read "watch_what/measure/where". TensorBoard groups tags by their first word and sorts the
groups: "watch" comes after "train" and "val", because those two groups matter most.
"""

from __future__ import annotations

from translate.insight.measure import KINDS, AttentionStatistics, Inspection


def inspection_scalars(found: Inspection) -> dict[str, float]:
    """Return the measurements of one inspection by tag."""
    scalars = {
        f"watch_attention/{name}/{kind}_{layer + 1}": value
        for (kind, layer), figures in found.attention.items()
        for name, value in figures._asdict().items()
    }
    for (part, layer), value in found.residual_rms.items():
        scalars[f"watch_residual/rms/{part}_{layer + 1}"] = value
    scalars["watch_source/nll/right"] = found.nll
    if found.nll_wrong_source is not None:
        scalars["watch_source/nll/wrong"] = found.nll_wrong_source
    return scalars


def _chart(*tags: str) -> list:
    return ["Multiline", [f"^{tag}$" for tag in tags]]


# The layout of the tab "custom scalars": each chart shows curves to compare. Tags are
# regular expressions.
CHARTS = {
    "loss": {
        "training and validation loss": _chart("train/nll", "val/nll"),
        "loss with the right and with the wrong source": _chart("watch_source/nll/.*"),
    },
    "optimisation": {
        "gradient norm": _chart("watch_gradient/norm/.*"),
        "size of an update / size of the weights": _chart("watch_update/ratio/.*"),
    },
    "residual stream": {
        f"RMS after each {kind} layer": _chart(rf"watch_residual/rms/{kind}_\d+")
        for kind in ("encoder", "decoder")
    },
    "attention": {
        f"{name.replace('_', ' ')}, {kind} attention": _chart(rf"watch_attention/{name}/{kind}_\d+")
        for name in AttentionStatistics._fields
        for kind in KINDS
    },
}
