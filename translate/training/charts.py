"""Names of what the monitor logs, and TensorBoard charts that combine several curves.

Tags read "what/measure/where". TensorBoard makes one group of all tags with the same first word.
"""

from __future__ import annotations

from translate.insight.measure import KINDS, AttentionStatistics, Inspection
from translate.model.transformer import Transformer


def inspection_scalars(found: Inspection) -> dict[str, float]:
    """Return what one inspection measured, by tag."""
    scalars = {
        f"attention/{name}/{kind}_{layer + 1}": value
        for (kind, layer), figures in found.attention.items()
        for name, value in figures._asdict().items()
    }
    for (part, layer), value in found.residual_rms.items():
        scalars[f"residual/rms/{part}_{layer + 1}"] = value
    scalars["source/nll/right"] = found.nll
    if found.nll_wrong_source is not None:
        scalars["source/nll/wrong"] = found.nll_wrong_source
    return scalars


def charts(model: Transformer) -> dict[str, dict[str, list]]:
    """Return the layout of the tab "custom scalars": a chart for what is to be compared."""

    def chart(*tags: str) -> list:
        return ["Multiline", [f"^{tag}$" for tag in tags]]

    def by_layer(tag: str, kind: str) -> list:
        layers = len(model.encoder if kind == "encoder" else model.decoder)
        return chart(*(f"{tag}/{kind}_{layer + 1}" for layer in range(layers)))

    parts = ("embedding", "encoder", "decoder")
    return {
        "loss": {
            "training and validation loss": chart("train/nll", "val/nll"),
            "loss with the right and with the wrong source": chart(
                "source/nll/right", "source/nll/wrong"
            ),
        },
        "optimisation": {
            "gradient norm": chart(*(f"gradient/norm/{part}" for part in parts)),
            "size of an update / size of the weights": chart(
                *(f"update/ratio/{part}" for part in parts)
            ),
        },
        "residual stream": {
            f"RMS after each {kind} layer": by_layer("residual/rms", kind)
            for kind in ("encoder", "decoder")
        },
        "attention": {
            f"{name.replace('_', ' ')}, {kind} attention": by_layer(f"attention/{name}", kind)
            for name in AttentionStatistics._fields
            for kind in KINDS
        },
    }
