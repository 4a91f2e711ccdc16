"""`translate fit`, `validate` and `test`: LightningCLI over a YAML file."""

from __future__ import annotations

import logging
import time
import warnings
from argparse import ArgumentError
from dataclasses import asdict
from pathlib import Path

import torch
from jsonargparse.typing import register_type
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from translate.decoding.bundle import find_model, load_bundle
from translate.decoding.translator import Translator
from translate.errors import UsageError, UserError
from translate.text.corpus import Pair, ParallelFiles
from translate.training.callbacks import ProgressBar, TranslateValidation, checkpoints
from translate.training.data import TranslationData, say
from translate.training.messages import explain
from translate.training.module import TranslationModule
from translate.training.run import RunFolder
from translate.training.scores import Scores, score

# A path in a config file is meant from that file, one on the command line from the working
# directory. jsonargparse reads a config file with its folder as the working directory.
register_type(
    Path,
    serializer=str,
    deserializer=lambda text: Path(text).expanduser().absolute(),
    fail_already_registered=False,
)

_QUIET = (
    ".*does not have many workers.*",  # batches of this size are cheaper than processes
    ".*smaller than the logging interval.*",  # `TranslationModule.on_train_start` sees to it
    ".*dataloader is not resumable.*",  # it is: `TranslationData.train_dataloader` skips
    ".*exists and is not empty.*",  # a resumed run goes on in its own folder
    ".*instantiate_classes.*was deprecated.*",  # inside Lightning
    ".*JsonargparseDeprecationWarning.*",
    ".*LeafSpec.*is deprecated.*",
)


class TranslationCLI(LightningCLI):
    """LightningCLI with this program's model, data, callbacks and run folders."""

    def __init__(self, args: list[str]) -> None:
        self.args = args
        self.resumed: Path | None = None
        settings = {"exit_on_error": False, "allow_abbrev": False}
        super().__init__(
            TranslationModule,
            TranslationData,
            save_config_callback=None,  # `before_fit` saves it beside the run
            seed_everything_default=1,
            trainer_defaults={
                "max_epochs": 20,
                "devices": 1,
                "log_every_n_steps": 10,
                "num_sanity_val_steps": 0,
                "enable_model_summary": False,
                "gradient_clip_val": 1.0,
            },
            parser_kwargs={**settings, **dict.fromkeys(self.subcommands(), settings)},
            auto_configure_optimizers=False,
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        unused = {"model", "datamodule", "dataloaders", "train_dataloaders", "val_dataloaders"}
        unused |= {"weights_only", "verbose"}
        return dict.fromkeys(("fit", "validate", "test"), unused)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_argument("--name", type=str, help="folder in runs; default: the config's name")
        parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of all runs")
        parser.add_lightning_class_args(EarlyStopping, "early_stopping")
        parser.set_defaults(
            {
                "early_stopping.monitor": "val/bleu",
                "early_stopping.mode": "max",
                "early_stopping.patience": 10,
                "early_stopping.check_on_train_epoch_end": False,
            }
        )
        parser.add_lightning_class_args(TranslateValidation, "translations")
        parser.link_arguments("model.max_length", "data.max_length")

    def parse_arguments(self, parser: LightningArgumentParser, args: object) -> None:
        try:
            self.config = parser.parse_args(self.args)
        except ArgumentError as error:
            subcommand = next((arg for arg in self.args if arg in self.subcommands()), "fit")
            known = self._parser(subcommand).get_defaults().keys()
            raise UsageError(explain(str(error), self.args, known)) from None

    def _parse_ckpt_path(self) -> None:
        """Lightning would let settings stored in a checkpoint override the command line."""

    def instantiate_classes(self) -> None:
        try:
            super().instantiate_classes()
        except ValueError as error:
            raise UsageError(str(error)) from None

    def instantiate_trainer(self, **kwargs: object) -> Trainer:
        """Fixed callbacks beside those of the config, so that setting one drops none."""
        settings = self.config[self.subcommand]
        trainer = settings.trainer
        self.folder = self._choose_folder(settings) if self.subcommand == "fit" else None
        ours = []
        if trainer.enable_progress_bar is not False:
            ours.append(ProgressBar(refresh_rate=5))
        if self.folder and trainer.enable_checkpointing is not False:
            ours += checkpoints(str(self.folder.checkpoints))
        self.trainer_defaults["callbacks"] = ours
        if trainer.logger in (None, True):
            kwargs["logger"] = self.folder is not None and TensorBoardLogger(
                self.folder.runs, self.folder.name, self.folder.version, default_hp_metric=False
            )
        return super().instantiate_trainer(**kwargs)

    def _choose_folder(self, settings) -> RunFolder:
        if settings.ckpt_path:
            self.resumed = _checkpoint_to_resume(Path(settings.ckpt_path))
            folder = RunFolder.of_checkpoint(self.resumed)
            if folder is not None:
                return folder
        name = settings.name or (Path(settings.config[-1]).stem if settings.config else "run")
        return RunFolder.new(settings.runs, name)

    def before_fit(self) -> None:
        """Everything that can be refused is refused before a folder is made."""
        if self.trainer.world_size > 1:
            raise UsageError(
                f"training runs on one device, not {self.trainer.world_size}: "
                "set --trainer.devices 1"
            )
        if self.resumed:
            self._prepare_to_resume(self.resumed)
        self.datamodule.setup("fit")
        if not self.trainer.fast_dev_run:
            self.folder.save_config(self._parser("fit").dump(self.config.fit, skip_none=False))
        self.started = time.monotonic()

    def _prepare_to_resume(self, path: Path) -> None:
        bundle = load_bundle(path)
        stored = asdict(bundle.model.config)
        changed = [
            f"{key} is {stored[key]} in the checkpoint, {value} in the config"
            for key, value in self.model.shape.items()
            if stored[key] != value
        ]
        if changed:
            raise UsageError(f"{path}: another model: {'; '.join(changed)}")
        self.datamodule.tokenizer = bundle.tokenizer
        self.config_init.fit.ckpt_path = str(path)
        epochs, steps = _progress(path)
        most_epochs, most_steps = self.trainer.max_epochs, self.trainer.max_steps
        if epochs >= (most_epochs or -1) >= 0 or steps >= most_steps >= 0:
            raise UserError(
                f"{path}: nothing left to train: {epochs} epochs and {steps} steps are done, of "
                f"max_epochs {most_epochs} and max_steps {most_steps} (-1: no limit); "
                "raise --trainer.max_epochs to go on"
            )

    def after_fit(self) -> None:
        """Mark the run as finished and say what to do with it."""
        best = self.trainer.checkpoint_callback
        if self.trainer.fast_dev_run or best is None:
            return
        bleu = None if best.best_model_score is None else float(best.best_model_score)
        self.folder.save_result(
            {
                "best_bleu": bleu,
                "best_checkpoint": best.best_model_path,
                "epochs": self.trainer.current_epoch,
                "steps": self.trainer.global_step,
                "seconds": round(time.monotonic() - self.started, 1),
            }
        )
        if bleu is not None:
            print(f"best validation BLEU {bleu:.2f}: {best.best_model_path}")
        for command in self.folder.commands(self.config.fit.translations.heatmap):
            print(command)

    def validate(self, *, ckpt_path: str | None, **_: object) -> None:
        """Loss, BLEU and sample translations on the validation data."""
        path = _announced(ckpt_path)
        self.datamodule.tokenizer = load_bundle(path).tokenizer
        self.trainer.validate(
            self.model, datamodule=self.datamodule, ckpt_path=str(path), verbose=False
        )
        for name, value in sorted(self.trainer.callback_metrics.items()):
            print(f"{name:<16} {float(value):.4f}")

    def test(self, *, ckpt_path: str | None, **_: object) -> None:
        """Scores of the test set and of each challenge file; the model sees sources only."""
        bundle = load_bundle(_announced(ckpt_path))
        model = bundle.model.to(self.trainer.strategy.root_device)
        translator = Translator(model, bundle.tokenizer)

        def score_pairs(pairs: list[Pair]) -> Scores:
            outputs = translator.translate([pair.source for pair in pairs])
            return score(outputs, [pair.target for pair in pairs])

        scores = score_pairs(self.datamodule.read("test"))
        print(f"test: {scores.sentences} sentences, greedy")
        print(f"BLEU {scores.bleu:6.2f}  {scores.bleu_signature}")
        print(f"chrF {scores.chrf:6.2f}  {scores.chrf_signature}")
        print(f"exactly right {scores.exact_share:.1%} ({scores.exact} of {scores.sentences})")
        files = self.datamodule.challenge_files()
        if files:
            print(f"\n{'challenge':<16} {'exactly right':>20} {'BLEU':>7} {'chrF':>7}")
        for path in files:
            scores = score_pairs(ParallelFiles(tsv=path).read("data.challenge").pairs)
            right = f"{scores.exact_share:.1%} ({scores.exact} of {scores.sentences})"
            print(f"{path.stem:<16} {right:>20} {scores.bleu:7.2f} {scores.chrf:7.2f}", flush=True)


def _announced(given: str | None) -> Path:
    """The model meant, said on stderr."""
    path = find_model(given)
    say(f"model: {path}")
    return path


def _checkpoint_to_resume(given: Path) -> Path:
    """Training goes on from the last state of a run, not from its best one."""
    last = [given / "last.ckpt", given / "checkpoints" / "last.ckpt"]
    return next((path for path in last if path.is_file()), None) or find_model(given)


def _progress(path: Path) -> tuple[int, int]:
    """Whole epochs and updates that a checkpoint has behind it."""
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    batches = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    return checkpoint["epoch"] + bool(batches["is_last_batch"]), checkpoint["global_step"]


def main(argv: list[str]) -> int:
    """Run `fit`, `validate` or `test` with LightningCLI's arguments; returns the exit code."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in _QUIET:
        warnings.filterwarnings("ignore", message)
    try:
        TranslationCLI(argv)
    except UserError as error:
        say(f"translate: {error}")
        return error.exit_code
    except MisconfigurationException as error:
        say(f"translate: {str(error).splitlines()[0]}")
        return UsageError.exit_code
    return 0
