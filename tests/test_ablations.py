"""What `scripts/ablations.py` takes out of the model is out, in training and in decoding."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
import yaml
from torch import nn
from torch.testing import assert_close

from translate.insight import measure
from translate.model import attention, transformer
from translate.model.attention import MultiHeadAttention
from translate.model.layers import Residual
from translate.model.transformer import Transformer

ROOT = Path(__file__).parents[1]
PAD, BOS = 0, 2
SRC = torch.tensor([[5, 6, 7, 3]])
TGT = torch.tensor([[BOS, 8, 9, 4]])


@pytest.fixture
def parts(monkeypatch):
    """The scripts' modules, as the scripts import them; what they change is put back."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    for owner, name in (
        (attention, "score_pairs"),
        (attention, "causal_mask"),
        (measure, "causal_mask"),
        (transformer, "padding_mask"),
        (Residual, "forward"),
        (Transformer, "_initialise"),
        (Transformer, "decode"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    from ablation_parts import claims, page, surgery

    yield {"claims": claims, "page": page, "surgery": surgery}
    for name in [name for name in sys.modules if name.startswith("ablation_parts")]:
        del sys.modules[name]


@pytest.fixture
def build(parts, config):
    def build(name: str) -> Transformer:
        parts["surgery"].operate(name)
        torch.manual_seed(0)
        model = Transformer(config())
        with torch.no_grad():
            model.embedding.weight.mul_(20)
        return model.eval()

    return build


def test_every_variant_has_a_config_and_every_operation_is_a_variant(parts):
    configs = {path.stem for path in (ROOT / "configs/ablation").glob("*.yaml")}
    assert configs == set(parts["claims"].VARIANTS)
    operations = set(parts["surgery"].OPERATIONS)
    assert operations < configs
    for name in configs - {"baseline"}:
        settings = yaml.safe_load((ROOT / f"configs/ablation/{name}.yaml").read_text())
        # What no setting can do, the file says by naming itself alone.
        assert (settings == {"name": name}) == (name in operations)


@pytest.mark.parametrize(
    "name",
    ["baseline", "no_scaling", "no_norm", "no_causal_mask", "no_padding_mask", "no_positions",
     "no_residual", "careless_init"],
)  # fmt: skip
@torch.no_grad()
def test_decoding_step_by_step_knows_of_the_operation(build, name):
    model = build(name)
    memory, mask = model.encode(SRC)
    cache = model.start_cache(memory, 8)
    stepwise = [model.decode(TGT[:, i : i + 1], memory, mask, cache) for i in range(4)]
    # Each prefix alone: without a causal mask all but the first position would see what follows.
    for i, hidden in enumerate(stepwise if name != "no_causal_mask" else stepwise[:1]):
        assert_close(hidden[:, 0], model.decode(TGT[:, : i + 1], memory, mask)[:, -1])


def test_without_the_causal_mask_the_future_is_seen(build):
    model, other = build("no_causal_mask"), TGT.clone()
    other[0, 3] = 11
    assert not torch.allclose(model(SRC, TGT)[0, 0], model(SRC, other)[0, 0], atol=1e-4)


def test_without_the_padding_mask_padding_is_seen(build):
    model = build("no_padding_mask")
    padded = nn.functional.pad(SRC, (0, 3), value=PAD)
    assert not torch.allclose(model(SRC, TGT), model(padded, TGT), atol=1e-4)


def test_without_positions_the_source_is_a_set(build):
    model = build("no_positions")
    assert_close(model(SRC, TGT), model(SRC[:, [2, 0, 3, 1]], TGT))


def test_without_scaling_the_scores_go_undivided_into_the_softmax(build):
    build("no_scaling")
    layer, record = MultiHeadAttention(16, 16, 4), []
    layer(*layer.queries_keys_values(torch.randn(1, 5, 16)), record=record)
    queries, keys = record[0].queries, record[0].keys
    assert_close(record[0].weights, (queries @ keys.transpose(-2, -1)).softmax(-1))
    assert_close(record[0].weights, (record[0].scores / 2).softmax(-1))  # what the alarm looks at


def test_without_norms_there_is_none_left(build):
    assert not [module for module in build("no_norm").modules() if isinstance(module, nn.LayerNorm)]


def test_without_the_residual_path_a_silent_sublayer_passes_nothing(build):
    model = build("no_residual")
    with torch.no_grad():
        for block in model.encoder:
            block.feed_forward[-1].weight.zero_()
            block.feed_forward[-1].bias.zero_()
    one, other = model.encode(SRC)[0], model.encode(SRC + 4)[0]
    assert_close(one, other)


def test_a_careless_start_has_ten_times_the_variance(build, parts):
    careless = build("careless_init").decoder[0].feed_forward[0].weight.var().item()
    assert careless == pytest.approx(10 * 2 / (16 + 32), rel=0.15)


def results(**changes) -> dict[str, dict]:
    sound = {
        "curves": {
            "train/nll": [(10, 7.0), (20, 1.0)],
            "val/nll": [(20, 1.0)],
            "val/bleu": [(20, 60.0)],
        },
        "stopped": "",
        "alarms": ["health: step 100: scores grow: up to 75 in decoder: lower something"],
        "compared": 64,
        "changed_by_neighbours": 0,
        "unchanged_by_order": 2,
        "start": {"largest_score": 1.0, "residual": 1.0, "evenness": 1.0},
        "end": {"largest_score": 8.0, "residual": 4.0, "evenness": 0.5},
    }
    return {"baseline": sound, "high_rate": sound, **changes}


def test_claims_are_held_against_the_results(parts):
    claims = parts["claims"]
    same = results()["baseline"]
    worse = {
        **same,
        "curves": {"train/nll": [(20, 0.4)], "val/nll": [(20, 3.0)], "val/bleu": [(20, 5.0)]},
        "changed_by_neighbours": 40,
        "unchanged_by_order": 64,
        "start": {"largest_score": 9.0, "residual": 9.0, "evenness": 0.9},
        "end": {"largest_score": 90.0, "residual": 40.0, "evenness": 0.2},
    }
    better = {**same, "curves": {**same["curves"], "val/nll": [(20, 0.4)]}}
    grown = {**better, "end": worse["end"]}
    for name, claim in claims.CLAIMS.items():
        assert claim.judge(results(**{name: same})) in (claims.SAME, claims.FAILS), name
        assert claim.judge(results(**{name: worse})) == claims.HOLDS, name
    assert claims.CLAIMS["one_head"].judge(results(one_head=same)) == claims.SAME
    assert claims.CLAIMS["one_head"].judge(results(one_head=better)) == claims.FAILS
    assert claims.CLAIMS["no_norm"].judge(results(no_norm=grown)) == claims.PARTLY
    assert claims.caption("one_head", results(one_head=worse)).endswith(
        "It holds: validation loss 3.00 and BLEU 5.0, against 1.00 and 60.0."
    )
    assert "64 of 64 sentences are translated as before, against 2;" in claims.caption(
        "no_positions", results(no_positions=worse)
    )


def test_a_variant_that_diverged_has_no_other_figures(parts):
    why = "training diverged: gradient norm nan after 20 updates; lower"
    for name in parts["claims"].CLAIMS:
        caption = parts["claims"].caption(
            name, results(**{name: {"curves": {}, "stopped": why, "alarms": []}})
        )
        assert caption.endswith(
            "Without the part training diverged (gradient norm nan after 20 updates)."
        )


def test_the_page_has_a_figure_a_caption_and_a_row_for_each(parts, tmp_path):
    names = parts["claims"].CLAIMS
    found = results(**{name: results()["baseline"] for name in names})
    found["gradient paths"] = {"self-attention": [1.0, 0.3, 0.3], "GRU": [1.0, 0.1, 0.001]}
    curve = {"lengths": [16, 32], "seconds": [0.1, 0.4], "mebibytes": [1.0, 4.0]}
    found["cost"] = {path: {**curve, "exponents": [2.0, 2.0]} for path in ("explicit", "fused")}
    near, far = {"words": 2, "right": 0.5, "count": 4}, {"words": 5, "right": 0.25, "count": 2}
    found["pronouns"] = {"baseline": [near, far], "fully trained": [near, {**far, "right": 1.0}]}
    page = parts["page"].write_page(tmp_path, found).read_text()
    for name in names:
        assert f"]({name}.png)" in page and f"| {name} |" in page
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert page.count("The lesson:") == len(names) + 3
    assert (
        "**It does not hold** for the baseline model: up to three words away 50% of the pronouns "
        "are right, beyond 25%. It holds for the fully trained model: up to three words away 50% "
        "of the pronouns are right, beyond 100%." in page
    )
    assert "| baseline | 1.00 | 60.0 | scores grow (100) |" in page


def test_pronoun_sentences_are_those_that_tell_and_their_shares_can_be_drawn(parts):
    import pronouns

    found = list(pronouns.cases())
    assert len(found) == 80
    assert all(case.right != case.wrong and case.between >= 0 for case in found)
    for case in found:
        words = re.findall(r"\w+", case.source)
        assert words.index(case.right) < [word.lower() for word in words].index("it")
    figure = pronouns.share_heatmap({"a": torch.rand(2, 4), "b": torch.rand(2, 4)})
    assert pronouns.rendered(figure, "png").startswith(b"\x89PNG")


def test_right_pronouns_are_counted_by_distance(parts):
    import pronouns

    wanted = {case.source: case for case in pronouns.cases()}

    class Perfect:
        def translate(self, sources):
            return [wanted[source].target for source in sources]

    class OnlyNear:
        def translate(self, sources):
            asked = [wanted[source] for source in sources]
            return [case.target if case.between <= 3 else "Ja." for case in asked]

    found = pronouns.by_distance(Perfect())
    assert sum(each["count"] for each in found) == 80
    assert {each["right"] for each in found} == {1.0}
    assert [each["words"] for each in found] == sorted({case.between for case in wanted.values()})
    for each in pronouns.by_distance(OnlyNear()):
        assert each["right"] == (1.0 if each["words"] <= 3 else 0.0)
