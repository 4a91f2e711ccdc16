import copy

import pytest
import torch
from torch import nn

from translate.training.optimizer import MuonAdamW, orthogonalise


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, count: int) -> None:
    torch.manual_seed(3)
    for _ in range(count):
        x = torch.randn(32, 16)
        (model(x) - x.roll(1, 1)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 16))


def muon(model: nn.Module) -> MuonAdamW:
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim != 2]
    groups = [
        {"params": matrices, "muon": True, "lr": 0.02, "weight_decay": 0.1},
        {"params": others, "weight_decay": 0.0, "muon": False},
    ]
    return MuonAdamW(groups, lr=1e-3, betas=(0.9, 0.98))


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_orthogonalised_matrices_keep_their_directions_and_lose_their_lengths(shape):
    torch.manual_seed(0)
    matrices = torch.randn(5, *shape) * torch.tensor([1e-4, 1.0, 1e3, 7.0, 1.0])[:, None, None]
    result = orthogonalise(matrices)
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    along = left.mT @ result @ right.mT  # diagonal in the same singular vectors
    diagonal = along.diagonal(dim1=-2, dim2=-1)
    assert (along - torch.diag_embed(diagonal)).abs().max() < 0.02
    large = values > 0.1 * values[:, :1]
    assert diagonal[large].min() > 0.5
    assert diagonal.max() < 1.3


def test_matrices_step_as_with_torch_muon_and_the_rest_as_with_adamw():
    ours, theirs = network(), network()
    steps(ours, muon(ours), 5)
    matrices = [p for p in theirs.parameters() if p.ndim == 2]
    others = [p for p in theirs.parameters() if p.ndim != 2]
    # momentum 0.95 and Nesterov as here; its products are in bfloat16
    reference = torch.optim.Muon(matrices, lr=0.02, weight_decay=0.1)
    adamw = torch.optim.AdamW(others, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.0)
    torch.manual_seed(3)
    for _ in range(5):
        x = torch.randn(32, 16)
        (theirs(x) - x.roll(1, 1)).pow(2).mean().backward()
        reference.step()
        adamw.step()
        theirs.zero_grad()
    start = network()
    for before, a, b in zip(
        start.parameters(), ours.parameters(), theirs.parameters(), strict=True
    ):
        moved = (b - before).norm()
        assert moved > 0
        assert (a - b).norm() < 0.05 * moved


def test_without_muon_groups_it_is_adamw():
    ours, theirs = network(), network()
    steps(ours, MuonAdamW([{"params": list(ours.parameters()), "muon": False}], lr=1e-2), 3)
    steps(theirs, torch.optim.AdamW(theirs.parameters(), lr=1e-2), 3)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_saved_and_loaded_it_goes_on_as_if_nothing_had_been():
    straight = network()
    optimizer = muon(straight)
    steps(straight, optimizer, 3)
    resumed = copy.deepcopy(straight)
    other = muon(resumed)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    steps(straight, optimizer, 2)
    steps(resumed, other, 2)
    for a, b in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_matrix_without_a_gradient_stays():
    model = network()
    before = model[0].weight.clone()
    optimizer = muon(model)
    model[2].weight.grad = torch.ones_like(model[2].weight)
    optimizer.step()
    assert torch.equal(model[0].weight, before)
