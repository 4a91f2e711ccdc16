"""The learning rate as a pure function of the step."""

from __future__ import annotations


def learning_rate(step: int, *, peak: float, warmup_steps: int, total_steps: float) -> float:
    """The rate for update number `step`, counted from 0.

    Rises in a straight line to `peak` at update `warmup_steps`, then falls in a straight line to
    zero after the last update. Warmup: Adam's estimates are noise in the first updates, and a
    full step along noise can throw the attention scores where no gradient brings them back.
    Decay: small steps at the end average the noise out. A run without an end (`total_steps` is
    infinite) stays at the peak.

    A pure function has no state to save: a resumed run gets the same rates as an unbroken one,
    and one that is resumed with more epochs follows the longer line from there on.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if total_steps == float("inf"):
        return peak
    decay_steps = max(1, total_steps - warmup_steps)
    return peak * max(0.0, (total_steps - step) / decay_steps)
