"""scripts/ablations.py: a variant lacks exactly one part, and the page says what was measured."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import pytest
import torch
import yaml
from torch import nn
from torch.testing import assert_close

from translate.decoding.incremental import CachedDecoder, PlainDecoder
from translate.model.transformer import Transformer

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import ablations
import pronouns
from ablation import claims, page
from ablation.measures import attention_cost, gradient_by_distance
from ablation.train import train_variant
from ablation.variants import MODELS

ROOT = Path(__file__).parents[1]
PAD, BOS = 0, 2
SRC = torch.tensor([[5, 6, 7, 3]])
TGT = torch.tensor([[BOS, 8, 9, 4]])


@pytest.fixture
def build(config):
    """Build a variant, or the whole model, from the same seed."""

    def build(name: str) -> Transformer:
        torch.manual_seed(0)
        model = MODELS.get(name, Transformer)(config())
        with torch.no_grad():
            model.embedding.weight.mul_(20)  # so that every token matters
        return model.eval()

    return build


def test_every_variant_is_either_a_subclass_or_a_setting():
    configs = {path.stem for path in (ROOT / "configs/ablation").glob("*.yaml")}
    assert sorted([*configs, *MODELS]) == sorted(claims.VARIANTS)


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"large_init"}))
def test_all_other_weights_start_as_in_the_whole_model(build, name):
    whole = build("baseline").state_dict()
    for key, value in build(name).state_dict().items():
        assert torch.equal(value, whole[key]), key


def test_a_large_initialisation_has_ten_times_the_variance(build):
    large = dict(build("large_init").named_parameters())
    for key, value in build("baseline").named_parameters():
        factor = math.sqrt(10) if value.ndim == 2 else 1
        assert_close(large[key], factor * value, msg=key)


@pytest.mark.parametrize("name", ["baseline", *MODELS])
@torch.inference_mode()
def test_cached_decoding_runs_the_variant(build, name):
    model = build(name)
    cached, plain = CachedDecoder(model, SRC, max_length=8), PlainDecoder(model, SRC)
    for piece in TGT[0].tolist():
        assert_close(cached.step([[piece]]), plain.step([[piece]]))
        if name == "no_causal_mask":
            break  # what was read earlier sees what comes later in the plain decoder only


@torch.inference_mode()
def test_without_scaling_weights_are_the_softmax_of_the_scores(build):
    attention = build("no_scaling").decoder[0].cross_attention.sublayer
    x, memory = torch.randn(1, 3, 16), torch.randn(1, 5, 16)
    queries, keys, values = (
        attention.split_heads(matrix(y))
        for matrix, y in (
            (attention.W_query, x),
            (attention.W_key, memory),
            (attention.W_value, memory),
        )
    )
    context = (queries @ keys.mT).softmax(-1) @ values
    expected = attention.out_proj(attention.merge_heads(context))
    assert_close(attention(x, memory), expected)
    attention.explicit_up_to = 0  # the fused kernel
    assert_close(attention(x, memory), expected)


@torch.inference_mode()
def test_without_layer_norm_a_block_adds_its_sublayer_alone(build):
    model = build("no_norm")
    assert not [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    x, residual = torch.randn(1, 3, 16), model.encoder[0].feed_forward
    assert_close(residual(x), x + residual.sublayer(x))


@torch.inference_mode()
def test_without_residual_connection_a_sublayer_replaces_its_input(build):
    model = build("no_residual")
    x, residual = torch.randn(1, 3, 16), model.decoder[1].feed_forward
    assert_close(residual(x), residual.sublayer(residual.norm(x)))


@torch.inference_mode()
def test_without_the_causal_mask_a_future_token_changes_earlier_logits(build):
    other = TGT.clone()
    other[0, 3] = 11
    whole, model = build("baseline"), build("no_causal_mask")
    assert_close(whole(SRC, TGT)[0, 0], whole(SRC, other)[0, 0])
    assert not torch.allclose(model(SRC, TGT)[0, 0], model(SRC, other)[0, 0], atol=1e-4)


@torch.inference_mode()
def test_without_the_padding_mask_padding_changes_the_logits(build):
    padded = nn.functional.pad(SRC, (0, 3), value=PAD)
    whole, model = build("baseline"), build("no_padding_mask")
    assert_close(whole(SRC, TGT), whole(padded, TGT))
    assert not torch.allclose(model(SRC, TGT), model(padded, TGT), atol=1e-4)


@torch.inference_mode()
def test_without_positions_the_order_of_the_source_changes_nothing(build):
    shuffled = SRC[:, [2, 0, 3, 1]]
    whole, model = build("baseline"), build("no_positions")
    assert_close(model(SRC, TGT), model(shuffled, TGT))
    assert not torch.allclose(whole(SRC, TGT), whole(shuffled, TGT), atol=1e-4)


WHOLE = {
    "training loss": 1.0,
    "validation loss": 1.0,
    "BLEU": 60.0,
    "share of translations that change in a batch": 0.0,
    "share of translations that stay when words are shuffled": 0.1,
    "attention entropy / maximum": 0.5,
    "RMS of the residual stream": 4.0,
    "largest score": 8.0,
    "initial RMS of the residual stream": 1.0,
    "initial largest score": 1.0,
}
WORSE = {
    "training loss": 0.4,
    "validation loss": 3.0,
    "BLEU": 5.0,
    "share of translations that change in a batch": 0.6,
    "share of translations that stay when words are shuffled": 1.0,
    "attention entropy / maximum": 0.2,
    "RMS of the residual stream": 40.0,
    "largest score": 90.0,
    "initial RMS of the residual stream": 9.0,
    "initial largest score": 9.0,
}


def result(**changes) -> dict:
    """What `train_variant` returns."""
    sound = {
        "diverged": "",
        "warnings": [(100, "large attention scores")],
        "series": {"train/nll": [(10, 7.0), (20, 1.0)], "val/nll": [(20, 1.0)]},
        "measured": WHOLE,
    }
    return {**sound, **changes}


@pytest.fixture
def configs(tmp_path, pairs):
    """The folder of configs with a baseline that trains for two updates on a dozen pairs."""
    for number, language in enumerate(("en", "de")):
        text = "".join(f"{pair[number]}\n" for pair in pairs)
        (tmp_path / f"pairs.{language}").write_text(text, encoding="utf-8")
    settings = yaml.safe_load((ROOT / "configs/ablation/baseline.yaml").read_text("utf-8"))
    files = {"source": "pairs.en", "target": "pairs.de"}
    settings["data"] |= {"train": files, "valid": files, "vocab_size": 140}
    settings["model"] |= {"d_model": 16, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    settings["trainer"] |= {"max_steps": 2, "val_check_interval": 1, "log_every_n_steps": 1}
    (tmp_path / "baseline.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return tmp_path


def test_a_variant_is_trained_and_all_numbers_of_the_page_are_measured(configs):
    found = train_variant("no_scaling", configs / "runs", configs)
    assert found["diverged"] == ""
    assert found["measured"].keys() == {*WHOLE, "initial attention entropy / maximum"}
    assert [len(found["series"][tag]) for tag in ("train/nll", "val/nll", "val/bleu")] == [2, 2, 2]
    assert sum(map(len, found["correct_pronouns"].values())) == 80
    # The module built the variant: its scores are twice those of the whole model, √d_k = 2.
    whole = train_variant("baseline", configs / "runs", configs)
    ratio = found["measured"]["initial largest score"] / whole["measured"]["initial largest score"]
    assert ratio == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("name", claims.CLAIMS)
def test_a_claim_holds_only_for_a_worse_variant(name):
    claim = claims.CLAIMS[name]
    assert claims.verdict(claim, result(), result()) == claims.SAME
    assert claims.verdict(claim, result(measured=WORSE), result()) == claims.HOLDS
    better = result(measured={**WHOLE, "validation loss": 0.9})
    assert claims.verdict(claim, better, result()) == claims.FAILS


def test_a_claim_may_hold_in_part():
    better = result(measured={**WORSE, "validation loss": 0.4})
    assert claims.verdict(claims.CLAIMS["no_norm"], better, result()) == claims.PARTLY
    told = claims.numbers(claims.CLAIMS["no_norm"], better, result())
    assert "largest score 90.00 (8.00); validation loss 0.40 (1.00)" in told


def test_the_published_page_is_the_one_drawn_from_the_stored_results(tmp_path, monkeypatch):
    published = ROOT / "docs/ablations"
    arguments = ["--from", str(published / "results.json"), "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["ablations.py", *arguments])
    ablations.main()
    text = (tmp_path / "README.md").read_text("utf-8")
    assert text == (published / "README.md").read_text("utf-8")
    figures = set(re.findall(r"\]\((\w+\.png)\)", text))
    assert len(figures) == len(claims.CLAIMS) + 3
    for folder in (tmp_path, published):
        assert {path.name for path in folder.glob("*.png")} == figures


def test_the_page_tells_of_a_diverged_variant_and_of_the_others(tmp_path):
    diverged = result(
        diverged="gradient norm nan after 20 updates",
        series={},
        measured={"validation loss": math.inf, "BLEU": 0.0},
    )
    line = {"lengths": [16, 32], "seconds": [0.1, 0.4], "mebibytes": [1.0, 4.0]}
    results = {
        "variants": {"baseline": result(), "one_head": diverged},
        "gradient_by_distance": {"self-attention": [1.0, 0.3, 0.3], "GRU": [1.0, 0.1, 0.001]},
        "attention_cost": {"explicit stages": line, "fused kernel": {**line, "mebibytes": [1, 2]}},
        "pronouns": {
            "baseline": {"2": [True, False], "5": [False]},
            "other": {"2": [True], "5": [True]},
        },
    }
    text = page.write_page(tmp_path, results).read_text("utf-8")
    assert json.loads((tmp_path / "results.json").read_text())["variants"].keys() == {
        "baseline",
        "one_head",
    }
    assert "| baseline | 1.00 | 60.0 | large attention scores (100) |\n" in text
    assert "| one_head | diverged | 0.0 | large attention scores (100) |\n" in text
    assert "it holds**. Training diverged: gradient norm nan after 20 updates." in text
    assert "time n^2.00 and memory n^2.00 for the explicit stages" in text
    assert "time n^2.00 and memory n^1.00 for the fused kernel" in text
    assert "50% correct with up to 3 words between, 0% with more" in text
    assert "Result for the other model: **it holds**" in text


def test_memory_of_attention_grows_linearly_without_the_score_matrix_and_faster_with_it():
    cost = attention_cost(lengths=(64, 128, 256), repeats=1)
    growth = {}
    for path, each in cost.items():
        a, b, c = each["mebibytes"]
        growth[path] = (c - b) / (b - a)
        assert all(seconds > 0 for seconds in each["seconds"])
    assert growth["fused kernel"] == pytest.approx(2, rel=0.01)
    assert growth["explicit stages"] > 2.5


def test_gradients_are_relative_to_the_last_token():
    for norms in gradient_by_distance(length=5, draws=2).values():
        assert len(norms) == 5 and norms[0] == 1.0 and min(norms) > 0


def test_pronoun_sentences_have_two_nouns_of_different_genders():
    sentences = pronouns.read_sentences()
    assert len(sentences) == 80
    for sentence in sentences:
        words = re.findall(r"\w+", sentence.source)
        it = [word.lower() for word in words].index("it")
        right, wrong = words.index(sentence.right), words.index(sentence.wrong)
        assert right != wrong and sentence.distance == it - right - 1 >= 0
        assert sentence.nearer == (right > wrong)


def test_correct_pronouns_are_counted_by_distance():
    sentences = {sentence.source: sentence for sentence in pronouns.read_sentences()}

    class CorrectUpTo3:
        def translate(self, sources):
            chosen = [sentences[source] for source in sources]
            return [each.target if each.distance <= 3 else "Ja." for each in chosen]

    found = pronouns.correct_by_distance(CorrectUpTo3())
    assert sum(map(len, found.values())) == 80
    assert list(found) == sorted({sentence.distance for sentence in sentences.values()})
    for distance, correct in found.items():
        assert set(correct) == {distance <= 3}


def test_shares_are_drawn_with_one_panel_each():
    figure = pronouns.share_heatmap({"a": torch.rand(2, 4), "b": torch.rand(2, 4)})
    assert [axes.get_title() for axes in figure.axes[:2]] == ["a", "b"]
    assert pronouns.rendered(figure, "png").startswith(b"\x89PNG")
