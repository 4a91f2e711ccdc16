"""What a browser shows: TensorBoard on a finished run, and an attention page.

Without Chromium and Playwright these tests are skipped, or fail if REQUIRE_BROWSER is set.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from translate.insight.attention import AttentionMaps
from translate.insight.page import attention_page

ROOT = Path(__file__).parents[1]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@pytest.fixture(scope="module")
def browser():
    missing = pytest.fail if os.environ.get("REQUIRE_BROWSER") else pytest.skip
    if CHROMIUM is None:
        missing("no Chromium (apt install chromium)")
    try:
        from playwright import sync_api as playwright
    except ImportError:
        missing("no Playwright (pip install playwright)")
    with playwright.sync_playwright() as started:
        # A container supports no Chromium sandbox and has little shared memory.
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        opened = started.chromium.launch(executable_path=CHROMIUM, args=options)
        opened.timeout = playwright.TimeoutError
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def runs(browser, tmp_path_factory) -> Path:
    """The folder of a short training."""
    folder = tmp_path_factory.mktemp("board")
    fit = [sys.executable, "-m", "translate", "fit", "--config", ROOT / "configs/tiny.yaml"]
    small = ["--model.d_model", 32, "--model.d_ff", 32, "--data.vocab_size", 300]
    short = ["--trainer.max_steps", 40, "--trainer.check_val_every_n_epoch", 1]
    quiet = ["--trainer.enable_progress_bar", "false"]
    command = [*fit, *small, *short, *quiet, "--runs", folder / "runs"]
    subprocess.run([str(part) for part in command], check=True, capture_output=True, cwd=folder)
    return folder / "runs"


@pytest.fixture(scope="module")
def board(runs) -> Iterator[str]:
    """The address of TensorBoard on that training."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tensorboard.main", "--logdir", runs, "--port", "0"],
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


def not_shown(browser, address: str, *texts: str | re.Pattern, tags: str = "") -> list:
    """Return those of `texts` that do not appear on the page; `tags` is typed into its filter."""
    page = browser.new_page(viewport={"width": 1600, "height": 2400})
    page.goto(address)
    if tags:
        page.get_by_role("combobox", name="Filter tags").fill(tags)
    absent = []
    for text in texts:
        try:
            page.get_by_text(text).first.wait_for(timeout=60_000)
        except browser.timeout:
            absent.append(text)
    page.close()
    return absent


def test_the_pinned_packages_start_tensorboard():  # B14
    command = [sys.executable, "-m", "tensorboard.main", "--version"]
    subprocess.run(command, check=True, capture_output=True)


def test_readme_shows_the_port_and_the_tunnel_and_nothing_starts_a_server():  # B16
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "ssh -L 6006:localhost:6006" in readme and "tensorboard --port 6006" in readme
    for path in (ROOT / "translate").rglob("*.py"):
        assert not re.search(
            r"import (socket|http\.server)|TensorBoard\(|\.launch\(", path.read_text()
        )


@pytest.mark.slow
def test_tensorboard_shows_curves_pictures_and_translations(browser, board, runs):
    assert not_shown(browser, f"{board}#timeseries", "train/loss") == []  # without scrolling
    (version,) = runs.glob("*/version_*")
    scalars = EventAccumulator(str(version)).Reload().Tags()["scalars"]
    tags = {tag.split("/")[0]: tag for tag in ["val/bleu", *scalars] if "/" in tag}
    assert len(tags) > 2  # training, validation, and measurements of the model
    shown = not_shown(browser, f"{board}#timeseries", *tags.values(), tags="|".join(tags.values()))
    assert shown == []
    assert not_shown(browser, f"{board}#images", re.compile("translation/.*_3")) == []
    assert not_shown(browser, f"{board}#text", "translations", "reference ") == []
    chart = re.compile("training and validation")
    assert not_shown(browser, f"{board}#custom_scalars", chart) == []
    assert not_shown(browser, f"{board}#hparams", "peak_learning_rate") == []


def test_hovering_over_a_word_shows_what_it_attends_to(browser, tmp_path):
    weights = torch.tensor([[[0.9, 0.1], [0.25, 0.75]], [[0.0, 1.0], [0.5, 0.5]]])
    axes = ("target word being predicted", "source word attended to")
    maps = AttentionMaps(
        weights, ["head 1", "head 2"], ["Das", "<b>Bei</b>"], ["This", "is"], *axes
    )
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
