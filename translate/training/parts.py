"""A large batch in parts, one on each thread: the same sums, without waiting after every operation.

Threads that share an operation wait for the slowest of them when it ends, some 2,000 times a step.
With a part of the sentences each, they meet once. On two idle cores 8,192 tokens so take a
twentieth less time; with another program on one of the cores, half.

B batch, S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from translate.decoding.parallel import in_parallel
from translate.model.layers import drawing_from
from translate.training.batching import Batch
from translate.training.objective import Loss

# Padded tokens of a part, at least. Parts of 2,000 take as long as the whole on idle cores, smaller
# ones longer: of their time more is Python's, which runs on one thread at a time.
SMALLEST = 1500


def loss_in_parts(
    loss: Callable[[Batch], Loss], batch: Batch, pad_id: int, parameters: Sequence[Tensor]
) -> Loss:
    """`loss(batch)`, on a CPU and with enough tokens in parts: the same sums, to rounding.

    The parts' gradients with respect to `parameters` are computed at once, each on its thread, and
    handed out when the sum is differentiated. Dropout differs: each part draws masks of its own.
    """
    count = how_many(batch)
    if count == 1:
        return loss(batch)
    parts = split(batch, pad_id, count)
    wanted = [parameter for parameter in parameters if parameter.requires_grad]
    summed, nll = _InParts.apply(loss, parts, *wanted)
    return Loss(summed, nll, int((batch.tgt_out != pad_id).sum()))


def how_many(batch: Batch) -> int:
    """The most parts that are not too small and of which each has the same number of threads."""
    if batch.src.device.type != "cpu":
        return 1
    threads = torch.get_num_threads()
    most = (batch.src.numel() + batch.tgt_in.numel()) // SMALLEST
    return max(n for n in range(1, threads + 1) if n == 1 or (n <= most and threads % n == 0))


def split(batch: Batch, pad_id: int, count: int) -> list[Batch]:
    """At most `count` parts of about as many sentences, without padding that no row of them needs.

    Pairs with much longer targets than sources stand together, so the parts have less of it.
    """
    sources, targets = ((ids != pad_id).sum(dim=1) for ids in (batch.src, batch.tgt_out))  # (B,)
    order = (targets - sources).argsort(stable=True)
    parts = []
    for rows in order.chunk(count):
        s, t = int(sources[rows].max()), int(targets[rows].max())
        parts.append(
            Batch(
                src=batch.src[rows, :s],
                tgt_in=batch.tgt_in[rows, :t],
                tgt_out=batch.tgt_out[rows, :t],
                indices=batch.indices[rows],
            )
        )
    return parts


class _InParts(torch.autograd.Function):
    """Losses of all parts and their gradients, while the parts' graphs are there."""

    @staticmethod
    def forward(
        ctx: Any, loss: Callable[[Batch], Loss], parts: list[Batch], *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        # From PyTorch's own generator, so that the seed of the run decides.
        seeds = torch.randint(2**63 - 1, (len(parts),)).tolist()
        precision = {
            "enabled": torch.is_autocast_enabled("cpu"),
            "dtype": torch.get_autocast_dtype("cpu"),
        }

        def part_of_it(part: tuple[Batch, int]) -> tuple[Loss, tuple[Tensor, ...]]:
            batch, seed = part
            with torch.enable_grad(), torch.autocast("cpu", **precision), drawing_from(seed):
                found = loss(batch)
            return found, torch.autograd.grad(found.loss, parameters)

        workers = len(parts)
        threads = torch.get_num_threads() // workers
        done = in_parallel(part_of_it, list(zip(parts, seeds, strict=True)), workers, threads)
        losses, gradients = zip(*done, strict=True)
        summed = list(gradients[0])
        for others in gradients[1:]:  # in their order, so that the same seed gives the same sums
            torch._foreach_add_(summed, others)
        ctx.save_for_backward(*summed)
        nll = sum(part.nll for part in losses)
        ctx.mark_non_differentiable(nll)
        return sum(part.loss.detach() for part in losses), nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *torch._foreach_mul(list(ctx.saved_tensors), grad_loss)
