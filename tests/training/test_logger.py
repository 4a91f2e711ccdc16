"""What TensorBoard shows: read back from the event files."""

from __future__ import annotations

import io

import numpy
import pytest
from PIL import Image
from tensorboard import plugin_util

TRAIN = {
    f"train/{name}"
    for name in (
        *("loss", "nll", "learning_rate", "gradient_norm"),
        *("tokens_per_second", "padding_share"),
    )
}
VALID = {
    f"val/{name}"
    for name in (
        *("loss", "nll", "perplexity", "bleu", "chrf", "exact_match"),
        *("limit_reached", "copied_source", "repeats_itself"),
    )
}
MONITOR = ("watch_attention", "watch_gradient", "watch_residual", "watch_source", "watch_update")


def text(outcome, tag: str = "translations/text_summary") -> str:
    return outcome.events().Tensors(tag)[-1].tensor_proto.string_val[0].decode("utf-8")


def test_every_curve_is_there_and_train_and_validation_share_none(finished):  # B02 B13
    scalars = set(finished.events().Tags()["scalars"])
    assert scalars >= TRAIN | VALID
    others = scalars - TRAIN - VALID - {"val/best_bleu"}
    assert {tag.split("/")[0] for tag in others} == set(MONITOR)


def test_steps_rise_and_count_updates(finished):  # B11
    for tag in TRAIN:
        assert finished.steps(tag) == list(range(1, 9))
    for tag in VALID:
        assert finished.steps(tag) == [4, 8]
    events = finished.events()
    assert [event.step for event in events.Images("translation/cross_attention_1")] == [4, 8]
    assert [event.step for event in events.Tensors("translations/text_summary")] == [4, 8]


def test_the_values_are_what_they_say(finished):
    for _, share in finished.curve("train/padding_share"):
        assert 0 <= share < 0.5
    for tag in ("train/gradient_norm", "train/tokens_per_second", "train/loss", "train/nll"):
        assert all(value > 0 for _, value in finished.curve(tag))
    for (_, nll), (_, perplexity) in zip(
        finished.curve("val/nll"), finished.curve("val/perplexity"), strict=True
    ):
        assert perplexity == pytest.approx(numpy.exp(nll), rel=1e-5)
    # Close to ln(120), the loss of guessing, at the very start.
    assert finished.curve("train/nll")[0][1] == pytest.approx(numpy.log(120), rel=0.15)


@pytest.mark.parametrize("budget", [20, 60, 10_000])
def test_the_validation_loss_does_not_depend_on_the_batches(run, finished, budget):  # T08
    # 20 tokens are a pair a batch, 10,000 are all pairs in one.
    shares = ["--config", finished.folder / "config.yaml", "--data.batch_tokens", budget]
    outcome = run(
        "validate", None, *shares, "--ckpt_path", finished.folder / "checkpoints/last.ckpt"
    )
    values = dict(line.split() for line in outcome.out.splitlines())
    assert float(values["val/loss"]) == pytest.approx(finished.curve("val/loss")[-1][1], abs=1e-4)


def test_the_picture_has_the_sentence_and_can_be_read(finished):  # B07 B08
    image = finished.events().Images("translation/cross_attention_1")[-1]
    pixels = numpy.asarray(Image.open(io.BytesIO(image.encoded_image_string)))
    assert pixels.shape == (image.height, image.width, 3)
    assert len(numpy.unique(pixels)) > 10


def test_no_sign_in_a_sentence_becomes_markup(run, settings, tmp_path):  # B10
    odd = "a|b <unk> x_y_z *z* # 1. `c` <b>d</b> &amp; \u2028 \r e"
    (tmp_path / "valid.tsv").write_bytes(f"{odd}\tein <i> *Satz*\n".encode())
    outcome = run(
        *("fit", settings, "--data.valid.tsv", "valid.tsv"),
        *("--trainer.max_steps", 1, "--model.max_length", 100),
    )
    html = plugin_util.markdown_to_safe_html(text(outcome))
    assert html.startswith("<pre><code>")
    assert html.rstrip().endswith("</code></pre>")
    assert html.count("<") == 4
    shown = "a|b &lt;unk&gt; x_y_z *z* # 1. `c` &lt;b&gt;d&lt;/b&gt; &amp;amp; e\n"
    assert f"source     {shown}" in html
    assert "reference  ein &lt;i&gt; *Satz*\n" in html
    assert "\noutput     " in html


@pytest.mark.parametrize(
    "sentence", ["cat", "The cat is \U0001f600 here $5 and $x_{", "the cat " * 40, "▁ ␣"]
)
def test_any_sentence_can_be_drawn(run, settings, sentence, recwarn):  # B08 B09
    settings["translations"]["heatmaps"] = [sentence, "a cat"]
    outcome = run("fit", settings, "--trainer.max_steps", 1)
    assert outcome.code == 0
    assert outcome.events().Images("translation/cross_attention_1")
    assert outcome.events().Images("translation/cross_attention_2")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_a_blank_heatmap_draws_none(run, settings):
    settings["translations"]["heatmaps"] = [" ", ""]
    outcome = run("fit", settings, "--trainer.max_steps", 1)
    assert outcome.code == 0
    assert outcome.events().Tags()["images"] == []
