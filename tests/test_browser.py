"""What a person sees in a browser: TensorBoard on a finished run, and an attention page."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from translate.insight.attention import AttentionMaps
from translate.insight.page import attention_page

ROOT = Path(__file__).parents[1]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        missing_browser = pytest.fail if os.environ.get("REQUIRE_BROWSER") else pytest.skip
        missing_browser("no Chromium (apt install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as started:
        # A container has no place for Chromium's sandbox and little shared memory.
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        opened = started.chromium.launch(executable_path=CHROMIUM, args=options)
        opened.timeout = playwright.TimeoutError
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def board(browser, tmp_path_factory) -> Iterator[str]:
    """The address of TensorBoard on the run of a few steps."""
    folder = tmp_path_factory.mktemp("board")
    fit = [sys.executable, "-m", "translate", "fit", "--config", ROOT / "configs/tiny.yaml"]
    small = ["--model.d_model", 32, "--model.d_ff", 32, "--data.vocab_size", 300]
    short = [
        "--trainer.max_steps",
        40,
        "--trainer.check_val_every_n_epoch",
        1,
        "--trainer.enable_progress_bar",
        "false",
    ]
    command = [*fit, *small, *short, "--runs", folder / "runs"]
    subprocess.run([str(part) for part in command], check=True, capture_output=True, cwd=folder)
    server = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", "--logdir", folder / "runs", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in server.stderr:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                break
    finally:
        server.terminate()
        server.wait(30)


def missing(browser, address: str, *texts: str, tags: str = "") -> list[str]:
    """Those of `texts` that the page does not come to show; `tags` goes into its filter."""
    page = browser.new_page(viewport={"width": 1600, "height": 2400})
    page.goto(address)
    if tags:
        page.get_by_role("combobox", name="Filter tags").fill(tags)
    found = []
    for text in texts:
        with contextlib.suppress(browser.timeout):
            page.get_by_text(text).first.wait_for(timeout=60_000)
            found.append(text)
    page.close()
    return [text for text in texts if text not in found]


def test_the_pinned_packages_start_tensorboard():  # B14
    command = [sys.executable, "-m", "tensorboard.main", "--version"]
    assert re.match(r"2\.\d+", subprocess.run(command, capture_output=True, text=True).stdout)


def test_readme_shows_the_port_and_the_tunnel_and_nothing_starts_a_server():  # B16
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "ssh -L 6006:localhost:6006" in readme and "tensorboard --port 6006" in readme
    for path in (ROOT / "translate").rglob("*.py"):
        assert not re.search(
            r"import (socket|http\.server)|TensorBoard\(|\.launch\(", path.read_text()
        )


def test_tensorboard_shows_curves_pictures_and_translations(browser, board):
    assert missing(browser, f"{board}#timeseries", "train/loss") == []  # first of all
    for tag in (
        "val/bleu",
        "translation/cross_attention_1",
        "within_attention_entropy/cross_1",
        "within_update_ratio/encoder",
    ):
        assert missing(browser, f"{board}#timeseries", tag, tags=tag) == []
    assert missing(browser, f"{board}#images", "translation/cross_attention_3") == []
    assert missing(browser, f"{board}#text", "translations", "reference ") == []
    assert missing(browser, f"{board}#custom_scalars", "loss of training and validation") == []
    assert missing(browser, f"{board}#hparams", "peak_learning_rate") == []


def test_hovering_a_word_shows_what_it_looks_at(browser, tmp_path):
    weights = torch.tensor([[[0.9, 0.1], [0.25, 0.75]], [[0.0, 1.0], [0.5, 0.5]]])
    maps = AttentionMaps(weights, ["head 1", "head 2"], ["Das", "<b>Bei</b>"], ["This", "is"])
    path = tmp_path / "page.html"
    path.write_text(attention_page(maps, "This </script> is $1"), encoding="utf-8")
    page = browser.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: request.url == path.as_uri() or faults.append(request.url))
    page.goto(path.as_uri())
    assert page.title() == page.locator("h1").inner_text() == "This </script> is $1"

    def numbers() -> list[str]:
        return page.locator("#columns small").all_inner_texts()

    assert page.locator("#rows .word").all_inner_texts() == ["Das", "<b>Bei</b>"]
    assert numbers() == ["0.900", "0.100"]
    page.get_by_text("<b>Bei</b>").hover()
    assert numbers() == ["0.250", "0.750"]
    backgrounds = page.locator("#columns .word").evaluate_all(
        "words => words.map(word => getComputedStyle(word).backgroundColor)"
    )
    shades = [float(re.search(r"([\d.]+)\)$", colour)[1]) for colour in backgrounds]
    assert shades == pytest.approx([0.2, 0.6], abs=0.01)
    page.locator("select").select_option("head 2")
    assert numbers() == ["0.500", "0.500"]
    page.keyboard.press("Tab")  # the first word, without a mouse
    page.get_by_text("Das").focus()
    assert numbers() == ["0.000", "1.000"]
    assert faults == []
    page.close()
