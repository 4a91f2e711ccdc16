"""The model never attends to later tokens or padding, nor to other sentences of the batch."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from translate.model.transformer import AttentionRecord, Transformer, TransformerConfig

SRC = torch.tensor([[5, 9, 7, 3, 0, 0], [4, 8, 6, 5, 9, 3]])
TGT = torch.tensor([[2, 6, 7, 0, 0], [2, 8, 9, 10, 11]])


def test_every_contradiction_is_reported_at_once():
    with pytest.raises(ValueError) as error:
        TransformerConfig(
            vocab_size=0, pad_id=-1, d_model=15, n_heads=4, dropout=1.0, norm="no", max_length=1
        )
    for part in ("vocab_size", "n_heads 4", "15 must be even", "dropout", "norm", "max_length"):
        assert part in str(error.value)


def test_shapes_from_ids_to_logits(model):
    memory, src_mask = model.encode(SRC)
    assert memory.shape == (2, 6, 16)
    assert src_mask.shape == (2, 1, 1, 6)
    assert model.decode(TGT, memory, src_mask).shape == (2, 5, 16)
    assert model(SRC, TGT).shape == (2, 5, 23)


@pytest.mark.parametrize("changed", range(1, 5))
def test_a_future_token_leaves_earlier_logits_bit_identical(model, changed):  # A09
    other = TGT.clone()
    other[1, changed] = 20
    before, after = model(SRC, TGT)[1], model(SRC, other)[1]
    assert torch.equal(before[:changed], after[:changed])
    assert not torch.allclose(before[changed:], after[changed:])


def test_every_source_token_reaches_the_first_target_position(model):  # A13, G05
    src = torch.tensor([[4, 8, 6, 5, 9, 10, 3]])
    record = AttentionRecord()
    memory, src_mask = model.encode(src)
    before = model.decode(TGT[1:, :3], memory, src_mask, record=record)
    assert all(stages.weights[:, :, 0].gt(0).all() for stages in record.cross)
    src[0, 5] = 11
    after = model.decode(TGT[1:, :3], *model.encode(src))
    assert not torch.allclose(before[0, 0], after[0, 0])
    assert not torch.allclose(before, model.decode(TGT[1:, :3], memory * 0, src_mask))


@pytest.mark.parametrize("training", [True, False])
def test_padding_columns_change_nothing_and_are_kept(model, training):  # A17, A18
    model.train(training)
    wider_src, wider_tgt = F.pad(SRC, (0, 3)), F.pad(TGT, (0, 2))
    with torch.inference_mode(not training):
        assert model.encode(wider_src)[0].shape[1] == 9
        assert_close(
            model(wider_src, wider_tgt)[:, :5][TGT != 0],
            model(SRC, TGT)[TGT != 0],
            atol=1e-5,
            rtol=1e-5,
        )


def test_training_and_evaluation_mode_agree_without_dropout(model):  # A17
    expected = model(SRC, TGT)
    assert_close(model.train()(SRC, TGT), expected, atol=1e-5, rtol=1e-5)


def test_dropout_acts_in_training_only(config):
    model = Transformer(config(dropout=0.3))
    assert not torch.allclose(model(SRC, TGT), model(SRC, TGT))
    model.eval()
    assert torch.equal(model(SRC, TGT), model(SRC, TGT))


def test_batch_order_and_batch_size_change_nothing(model):  # A15, A20
    together = model(SRC, TGT)
    assert_close(model(SRC.flip(0), TGT.flip(0)).flip(0), together, atol=1e-5, rtol=1e-5)
    alone = model(SRC[:1, :4], TGT[:1, :3])
    assert_close(alone, together[:1, :3], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layers", [(1, 3), (3, 1)])
def test_depths_of_encoder_and_decoder_may_differ(config, layers):  # G06
    model = Transformer(config(encoder_layers=layers[0], decoder_layers=layers[1]))
    record = AttentionRecord()
    memory, src_mask = model.encode(SRC, record)
    model.logits(model.decode(TGT, memory, src_mask, record=record)).sum().backward()
    assert (len(record.encoder), len(record.decoder), len(record.cross)) == (*layers, layers[1])


def test_recording_does_not_change_the_output(model):  # A02
    record = AttentionRecord()
    memory, src_mask = model.encode(SRC, record)
    hidden = model.decode(TGT, memory, src_mask, record=record)
    assert_close(model.logits(hidden), model(SRC, TGT), atol=1e-5, rtol=1e-5)
    for stages in record.cross:
        assert stages.weights.shape == (2, 4, 5, 6)
        assert_close(stages.weights.sum(-1), torch.ones(2, 4, 5))
        assert stages.weights[0, ..., 4:].eq(0).all()


def test_an_all_padding_source_poisons_no_gradient(model):  # A01
    src, tgt = SRC.clone(), TGT.clone()
    src[0] = 0
    grads = []
    for s, t in ((src, tgt), (src[1:], tgt[1:])):
        model.zero_grad()
        logits = model(s, t)
        assert logits.isfinite().all()
        logits[-1].square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for together, alone in zip(*grads, strict=True):
        assert together.isfinite().all()
        assert_close(together, alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite(model, dtype):  # A06
    assert model.to(dtype)(SRC, TGT).isfinite().all()


def test_the_pad_embedding_cannot_change_any_output(model):  # A03, A21
    before = model(SRC, TGT)
    with torch.no_grad():
        model.embedding.weight[0] = 100 * torch.randn(16)
    after = model(SRC, TGT)
    real = TGT != 0
    assert torch.equal(before[real][:, 1:], after[real][:, 1:])


def test_pad_id_is_taken_from_the_config_everywhere(config):  # A22, A25
    model = Transformer(config(pad_id=3))
    assert model.embedding.padding_idx == 3
    assert model.embedding.weight.abs().sum(-1).gt(0).sum() == 22  # all but the pad row
    src = torch.tensor([[0, 5, 3, 3]])
    memory, src_mask = model.encode(src)
    assert src_mask.flatten().tolist() == [True, True, False, False]
    memory[0, 0, 0].backward()
    assert model.embedding.weight.grad[0].abs().sum() > 0  # token 0 trains like any other
    assert model.embedding.weight.grad[3].abs().sum() == 0


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("vocab_size", [30, 1000, 8000])
def test_first_loss_is_near_ln_v_and_positions_are_heard(norm, vocab_size):  # A23
    model = Transformer(TransformerConfig(vocab_size, 0, norm=norm))
    ids = torch.randint(4, vocab_size, (3, 16, 10))
    loss = F.cross_entropy(model(ids[0], ids[1]).flatten(0, 1), ids[2].flatten())
    assert abs(loss.item() / math.log(vocab_size) - 1) < 0.15
    embedded = model.embedding(ids[0]) * math.sqrt(128)
    ratio = model.positions[:10].norm() / embedded[0].norm()
    assert 0.01 < ratio < 100


def test_a_sequence_beyond_the_position_table_is_refused_with_both_lengths(model):  # A24
    with pytest.raises(ValueError, match="33 pieces, but max_length is 32"):
        model.encode(torch.full((1, 33), 5))


def test_random_targets_cannot_be_learned_below_ln_v(config):  # A10
    """A model that peeked at the next token would drive this loss to zero."""
    model = Transformer(config(encoder_layers=1, decoder_layers=1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(150):
        src, tgt = torch.randint(4, 23, (16, 6)), torch.randint(4, 23, (16, 9))
        loss = F.cross_entropy(model(src, tgt[:, :-1]).flatten(0, 1), tgt[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert min(losses) > math.log(19) - 0.2
    assert losses[-1] < losses[0]  # it did learn what there is: the 19 pieces in use
