"""Whose time is it: the profiler's events of whole steps, forward and backward, by block."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from torch.profiler import ProfilerActivity, profile, record_function

REST = "the rest"
GRADIENTS = "adding up gradients"
# Block -> where its work is done. Nested ones: the innermost counts.
METHODS = {
    "norms, dropout, residual sums": ("layers.Residual.forward",),
    "embedding": ("transformer.Transformer._embed",),
    "attention": (
        "attention.MultiHeadAttention.forward",
        "attention.MultiHeadAttention.queries",
        "attention.MultiHeadAttention.queries_keys_values",
        "transformer.Transformer._keys_and_values",
    ),
    "feed-forward": ("layers.FeedForward.forward",),
}


def shares(step: Callable[[Any], None], batches: Iterable[Any]) -> tuple[dict[str, float], float]:
    """Block -> share of the time of `step` on all `batches`; seconds of a mean step, profiled."""
    _label()
    batches = list(batches)
    started = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for batch in batches:
            with record_function(REST):
                step(batch)
        seconds = (time.perf_counter() - started) / len(batches)
    totals = by_block(profiler.events())
    whole = sum(totals.values())
    return {block: total / whole for block, total in totals.items()}, seconds


def _label() -> None:
    """Put a range of the profiler around every method that does the work of a block."""
    from translate.model import attention, layers, transformer
    from translate.training import module

    places = {"attention": attention, "layers": layers, "transformer": transformer}
    for block, methods in METHODS.items():
        for path in methods:
            place, owner, name = path.split(".")
            owner = getattr(places[place], owner)
            setattr(owner, name, _ranged(block, getattr(owner, name)))
    loss = module.label_smoothed_cross_entropy
    module.label_smoothed_cross_entropy = _ranged("output layer and loss", loss)


def _ranged(block: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        with record_function(block):
            return function(*args, **kwargs)

    return inner


def by_block(events: Iterable[Any]) -> dict[str, float]:
    """Block -> microseconds, self times only, so that nothing counts twice."""
    events = sorted(events, key=lambda event: event.time_range.start)
    blocks = {*METHODS, "output layer and loss", "clipping and optimiser", REST}
    # A node of the graph has the number that was due when its operation began. Operations that
    # make no node see the same number, but begin before the one that makes it.
    maker: dict[int, str] = {}
    for event in events:
        if event.sequence_nr >= 0 and not any(map(_is_backward, _upwards(event))):
            maker[event.sequence_nr] = _block_of(event, blocks, {})
    totals: defaultdict[str, float] = defaultdict(float)
    for event in events:
        block = _block_of(event, blocks, maker)
        if block:
            totals[block] += event.self_cpu_time_total
    return dict(totals)


def _upwards(event: Any) -> Iterator[Any]:
    """The event, the one that it happened in, and so on."""
    while event is not None:
        yield event
        event = event.cpu_parent


def _is_backward(event: Any) -> bool:
    return event.name.startswith("autograd::engine::evaluate_function: ")


def _block_of(event: Any, blocks: set[str], maker: dict[int, str]) -> str:
    """The block that an event's time belongs to; "" outside of the steps."""
    for place in _upwards(event):
        if place.name in blocks:
            return place.name
        if _is_backward(place):
            if "AccumulateGrad" in place.name:
                return GRADIENTS
            return maker.get(place.sequence_nr, REST)
    return ""
