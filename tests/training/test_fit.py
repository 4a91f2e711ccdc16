"""What a training run does and which files it writes, with usual and unusual settings."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import torch
import yaml

from translate.decoding.translator import Translator
from translate.model.transformer import Transformer
from translate.training.cli import TranslationCLI
from translate.training.module import TranslationModule

THREE = "Hello there\tHallo\nA cat\tEine Katze\nThis is an example\tDas ist ein Beispiel\n"
WHOLE = [
    "checkpoints/best.ckpt",
    "checkpoints/last.ckpt",
    "config.yaml",
    "events.out",
    "projector",
    "result.json",
    "run.json",
]


def interrupt():
    raise KeyboardInterrupt


def test_a_run_leaves_config_checkpoints_events_and_result(finished):  # B02
    assert finished.code == 0
    assert finished.files == WHOLE
    result = json.loads((finished.folder / "result.json").read_text())
    assert (result["epochs"], result["steps"]) == (2, 8)
    assert result["best_checkpoint"] == f"{finished.folder}/checkpoints/best.ckpt"


def test_stdout_holds_the_best_score_and_the_commands_alone(finished):  # B03
    folder = finished.folder
    best, tensorboard, decode = finished.out.splitlines()
    assert best.startswith("best validation BLEU ")
    assert best.endswith(f": {folder}/checkpoints/best.ckpt")
    assert shlex.split(tensorboard) == ["tensorboard", "--logdir", str(folder.parent)]
    words = ["translate", "decode", "--model", str(folder), "This is an example"]
    assert shlex.split(decode) == words


def test_checkpoints_are_numbers_and_text_and_translate_by_themselves(finished):  # C01 C09
    for name in ("best", "last"):
        checkpoint = finished.checkpoint(name)  # with weights_only=True
        assert isinstance(checkpoint["translate"]["config"]["vocab_size"], int)
        path = finished.folder / "checkpoints" / f"{name}.ckpt"
        assert len(Translator.load(path).translate(["The cat"])) == 1


def test_each_validation_shows_its_score_and_samples(finished):
    steps = [line for line in finished.err.splitlines() if line.startswith("step ")]
    assert [line.partition("BLEU")[0] for line in steps] == ["step 4: ", "step 8: "]
    assert finished.err.count("source     ") == finished.err.count("reference  ") == 6


def test_a_validation_says_what_a_reader_of_its_score_should_know(run, settings, tmp_path):
    (tmp_path / "odd.tsv").write_text("The cat is 20.\tDie Katze ist 20.\n", encoding="utf-8")
    args = ("--data.valid.tsv", "odd.tsv", "--trainer.fast_dev_run", True)
    note = "1 of 1 sources have characters that the model has never seen, such as '2'"
    assert note in run("fit", settings, *args).err


def test_a_stop_inside_the_first_epoch_is_validated_and_whole(run, settings):
    outcome = run("fit", settings, "--trainer.max_steps", 2)
    assert outcome.files == WHOLE
    assert outcome.steps("val/bleu") == [2]
    assert outcome.checkpoint()["global_step"] == 2


def test_three_pairs_train_and_log_without_a_special_case(run, tmp_path):  # B02
    (tmp_path / "three.tsv").write_text(THREE, encoding="utf-8")
    outcome = run(
        *("fit", None, "--data.train.tsv", "three.tsv", "--model.d_model", 16),
        *("--trainer.max_epochs", 3, "--trainer.accelerator", "cpu"),
        *("--translations.heatmaps", '["A cat"]'),
    )
    assert outcome.code == 0
    assert outcome.files == WHOLE
    assert outcome.steps("train/loss") == outcome.steps("val/loss") == [1, 2, 3]
    assert outcome.steps("train/tokens_per_second") == [1, 2, 3]
    assert len(outcome.events().Images("translation/cross_attention_1")) == 3
    assert "held out 1 pair of data.train" in outcome.err
    assert "reduced to" in outcome.err


def test_three_pairs_are_learned_by_heart_and_end_by_themselves(run, tmp_path):  # T02 G05
    (tmp_path / "three.tsv").write_text(THREE, encoding="utf-8")
    outcome = run(
        *("fit", None, "--data.train.tsv", "three.tsv", "--data.valid.tsv", "three.tsv"),
        *("--model.d_model", 32, "--model.d_ff", 64, "--model.dropout", 0),
        *("--model.peak_learning_rate", 1e-2, "--model.warmup_steps", 10),
        *("--trainer.max_epochs", 60, "--trainer.check_val_every_n_epoch", 60),
        *("--trainer.accelerator", "cpu", "--trainer.logger", False),
    )
    assert "best validation BLEU 100.00" in outcome.out
    translations = Translator.load(outcome.folder).translate_detailed(
        ["Hello there", "A cat", "This is an example"]
    )
    assert [item.text for item in translations] == ["Hallo", "Eine Katze", "Das ist ein Beispiel"]
    assert not any(item.limit_reached for item in translations)


def test_fast_dev_run_leaves_no_file(run, settings, tmp_path):  # L11
    args = (["--trainer.logger", False], [])
    for more in args:
        outcome = run("fit", settings, "--trainer.fast_dev_run", True, *more)
        assert outcome.code == 0
        assert [path.name for path in tmp_path.iterdir()] == ["my.yaml"]


@pytest.mark.parametrize("logger", [True, False])
def test_the_same_command_again_makes_a_new_version_and_keeps_the_first(run, settings, logger):
    # L05 B04
    first = run("fit", settings, "--trainer.logger", logger)
    folder = first.folder
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    second = run("fit", settings, "--trainer.logger", logger)
    assert (first.code, second.code) == (0, 0)
    assert second.folder.name == "version_1"
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert ("tensorboard" in second.out) == logger


def test_the_same_config_gives_the_same_losses_whatever_the_number_of_workers(
    run, settings, finished
):  # T19 T20
    for workers in (0, 2):
        args = ("--trainer.max_epochs", 2, "--data.num_workers", workers)
        again = run("fit", settings, *args)
        assert again.curve("train/loss") == finished.curve("train/loss")
        assert again.curve("val/loss") == finished.curve("val/loss")


def test_another_seed_gives_other_losses(run, settings, finished):
    other = run("fit", settings, "--seed_everything", 2)
    assert other.curve("train/loss") != finished.curve("train/loss")[:4]


def test_overfitting_a_batch_repeats_that_batch(run, settings, watcher):
    args = ("--trainer.overfit_batches", 1, "--trainer.max_epochs", 3)
    assert run("fit", settings, *args).code == 0
    assert len({tuple(batch) for _, batch in watcher.batches}) == 1
    assert len(watcher.batches) == 3


def test_accumulated_batches_give_the_gradient_of_one_big_batch(run, settings, watcher):
    # T07 T08
    settings["trainer"]["gradient_clip_val"] = None
    run("fit", settings, "--data.batch_tokens", 10_000)
    assert len(watcher.batches) == 1
    whole = watcher.gradients[-1]
    run("fit", settings, "--trainer.accumulate_grad_batches", 4)
    assert len(watcher.batches) == 5
    torch.testing.assert_close(watcher.gradients[-1], whole, rtol=1e-5, atol=1e-5)


def test_accumulation_logs_by_update(run, settings):  # B12
    outcome = run("fit", settings, "--trainer.accumulate_grad_batches", 2)
    assert outcome.steps("train/loss") == [1, 2]
    assert outcome.steps("val/bleu") == [2]
    assert [rate for _, rate in outcome.curve("train/learning_rate")] == pytest.approx(
        [0.001, 0.002]
    )


def test_every_update_has_the_rate_of_the_formula(run, settings, watcher):  # T10 T11
    settings["model"]["warmup_steps"] = 3
    outcome = run("fit", settings, "--trainer.max_epochs", 3)
    expected = [0.002 * factor for factor in (1 / 3, 2 / 3, 1, *(n / 9 for n in range(9, 0, -1)))]
    assert watcher.rates == pytest.approx(expected)
    assert [rate for _, rate in outcome.curve("train/learning_rate")] == pytest.approx(expected)


def test_a_run_without_validation_leaves_its_last_state_and_says_so(run, settings):
    outcome = run("fit", settings, "--trainer.limit_val_batches", 0)
    assert outcome.code == 0
    assert "no validation took place: no best.ckpt, only last.ckpt" in outcome.err
    assert outcome.files == [file for file in WHOLE if "best" not in file]
    assert len(outcome.out.splitlines()) == 2
    Translator.load(outcome.folder)


def test_a_callback_in_the_config_drops_none_of_ours(run, settings):  # L08
    settings["trainer"]["callbacks"] = [
        {"class_path": "lightning.pytorch.callbacks.LearningRateMonitor"}
    ]
    outcome = run("fit", settings)
    assert outcome.files == WHOLE
    assert "step 4: BLEU" in outcome.err
    assert "lr-AdamW/pg1" in outcome.events().Tags()["scalars"]
    del settings["trainer"]["callbacks"]
    again = run("fit", settings, "--trainer.callbacks+=LearningRateMonitor")
    assert again.files == WHOLE
    assert "lr-AdamW/pg1" in again.events().Tags()["scalars"]


def test_without_checkpointing_nothing_is_promised(run, settings):
    outcome = run("fit", settings, "--trainer.enable_checkpointing", False)
    assert outcome.code == 0
    assert outcome.files == ["config.yaml", "events.out", "projector", "run.json"]
    assert [line.split()[0] for line in outcome.out.splitlines()] == ["tensorboard"]


def test_a_run_without_an_end_keeps_its_rate(run, settings, watcher):
    watcher.at[9] = interrupt
    assert run("fit", settings, "--trainer.max_epochs", -1).code == 130
    assert watcher.rates == [0.001] + [0.002] * 8


def test_training_goes_on_in_training_mode_after_validation(run, settings, watcher):  # T17
    run("fit", settings, "--trainer.val_check_interval", 1, "--model.dropout", 0.1)
    assert watcher.training == [True] * 4


def test_only_the_score_depends_on_the_references(run, settings, finished, tmp_path):  # T03
    lines = tmp_path / "valid.tsv"
    text = Path(settings["data"]["valid"]["tsv"]).read_text(encoding="utf-8")
    lines.write_text(
        "".join(f"{line.split(chr(9))[0]}\tx y z.\n" for line in text.splitlines()),
        encoding="utf-8",
    )
    outcome = run("fit", settings, "--data.valid.tsv", lines, "--trainer.max_epochs", 2)
    shown = [
        [line for line in each.err.splitlines() if line.startswith("output")]
        for each in (outcome, finished)
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 6
    assert outcome.curve("val/chrf") != finished.curve("val/chrf")


def test_an_interrupted_run_says_how_to_go_on_and_keeps_its_checkpoints(run, settings, watcher):
    watcher.at[1] = interrupt
    outcome = run("fit", settings)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.err.splitlines()[-1].startswith("interrupted before the first")
    watcher.at = {5: interrupt}
    outcome = run("fit", settings, "--trainer.max_epochs", 3)
    assert (outcome.code, outcome.out) == (130, "")
    assert outcome.checkpoint("best")["global_step"] == outcome.checkpoint()["global_step"] == 4
    assert "result.json" not in outcome.files
    said = outcome.err.splitlines()[-1]
    assert said.startswith("interrupted; to resume: translate fit ")
    watcher.at = {}
    _, name, *args = shlex.split(said.partition("to resume: ")[2])
    resumed = run(name, None, *args)
    assert resumed.code == 0
    assert resumed.folder == outcome.folder
    assert resumed.checkpoint()["global_step"] == 12


def test_more_than_one_device_is_refused_in_a_line(run, settings):  # T18
    outcome = run("fit", settings, "--trainer.devices", 2)
    assert outcome.code == 2
    assert outcome.err == (
        "translate: training runs on one device, not 2: set --trainer.devices 1\n"
    )
    assert not outcome.runs.exists()


def test_mixed_precision_trains_and_clips(run, settings):
    outcome = run("fit", settings, "--trainer.precision", "bf16-mixed")
    assert outcome.files == WHOLE
    assert all(value > 0 for _, value in outcome.curve("train/gradient_norm"))


def test_a_subclass_may_build_another_model(settings, tmp_path):
    class Silent(Transformer):
        def logits(self, hidden):
            logits = torch.zeros(*hidden.shape[:-1], self.config.vocab_size)
            logits[..., 3] = 1.0  # eos
            return logits

    class SilentModule(TranslationModule):
        def build_model(self, config):
            return Silent(config)

    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump(settings))
    args = ["--config", str(path), "--runs", str(tmp_path / "runs"), "--trainer.max_steps", "1"]
    cli = TranslationCLI("fit", args, SilentModule)
    best, *_ = cli.fit()
    assert isinstance(cli.model.model, Silent)
    assert best.startswith("best validation BLEU 0.00: ")


def test_depths_of_encoder_and_decoder_may_differ(run, settings):  # G06
    args = ("--model.encoder_layers", 1, "--model.decoder_layers", 3)
    outcome = run("fit", settings, *args, "--translations.heatmaps", '["The cat"]')
    assert outcome.files == WHOLE
    assert outcome.events().Images("translation/cross_attention_1")
