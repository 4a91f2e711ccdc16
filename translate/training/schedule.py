"""The learning rate as a pure function of the step."""

from __future__ import annotations


def learning_rate(step: int, *, peak: float, warmup_steps: int, total_steps: float) -> float:
    """Return the learning rate of update number `step`, counted from 0.

    It rises linearly to `peak` at update `warmup_steps`, then falls linearly to zero after the last
    update. Warmup: Adam's estimates are noisy in the first updates, and a full step along noise can
    make attention scores so large that they get no gradient. Decay: small steps at the end
    average out the noise of the batches. A run without an end (`total_steps` is infinite) stays at
    `peak`.

    A pure function has no state to save: a resumed run has the same rates as an unbroken one, and
    a run that is resumed with more epochs follows the longer schedule from then on.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    if total_steps == float("inf"):
        return peak
    decay_steps = max(1, total_steps - warmup_steps)
    return peak * max(0.0, (total_steps - step) / decay_steps)
