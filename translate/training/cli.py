"""`translate fit`, `validate` and `test`: LightningCLI over a YAML file."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import time
from argparse import ArgumentError
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from translate.decoding.checkpoint import TrainedModel, find_model, load_checkpoint
from translate.decoding.scoring import LENGTH_PENALTY
from translate.decoding.translator import Translator
from translate.errors import UsageError
from translate.evaluation.report import report, report_challenges
from translate.training import config_types  # noqa: F401 (registers the type of a path)
from translate.training.callbacks import EarlyStoppingAboveZero, ProgressBar, Speed
from translate.training.checkpoints import SaveCheckpoints
from translate.training.config_errors import explain, sections
from translate.training.data import TranslationData, read_files
from translate.training.logger import RunLogger
from translate.training.module import TranslationModule
from translate.training.monitor import Monitor
from translate.training.resume import Resumed
from translate.training.run_folder import RunFolder, results_path
from translate.training.settings import check_search, check_trainer
from translate.training.silence import silence_lightning
from translate.training.validation import HEATMAPS, TranslateValidation

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FitResult:
    """What a finished training run left."""

    best_bleu: float | None  # of the validations; None without any
    best_checkpoint: Path | None
    commands: list[str]  # to look at the run and to use its model


def parse_settings(args: list[str]) -> Namespace:
    """Return the settings of `translate fit` with these arguments, parsed and checked.

    Raises:
        UsageError: with everything that is wrong, in one line.
    """
    silence_lightning()
    return TranslationCLI("fit", args).config


class TranslationCLI(LightningCLI):
    """This program's settings and, once a command is called, its Trainer, model and data.

    The constructor parses and checks the settings; `fit`, `validate` and `test` do the work.

    Args:
        command: "fit", "validate" or "test".
        args: the command line after the command.
        module_class: what is trained. A subclass can override `build_model` or parts of the update.

    Raises:
        UsageError: with everything that is wrong, in one line.
    """

    def __init__(
        self,
        command: str,
        args: list[str],
        module_class: type[TranslationModule] = TranslationModule,
    ) -> None:
        self.command = command
        self.arguments = args
        self.folder: RunFolder | None = None  # of `fit`
        self.resumed: Resumed | None = None
        self.checkpoints: SaveCheckpoints | None = None
        super().__init__(
            module_class,
            TranslationData,
            save_config_callback=None,  # `fit` saves it in the run's folder
            seed_everything_default=1,
            trainer_defaults={
                "max_epochs": 50,  # early stopping ends most runs before
                "devices": 1,
                "log_every_n_steps": 10,
                "num_sanity_val_steps": 0,
                "enable_model_summary": False,
                "gradient_clip_val": 1.0,
            },
            parser_kwargs={
                "prog": f"translate {command}",
                "description": "All settings can stand in a config file (--config).",
                "exit_on_error": False,
                "allow_abbrev": False,
            },
            run=False,  # no subcommands
            auto_configure_optimizers=False,
            load_from_checkpoint_support=False,
        )

    # LightningCLI's constructor calls the next three in this order

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        runs = Path("runs").absolute()  # so that a printed config means the same everywhere
        parser.add_argument("--name", type=str, help="folder in runs; default: the config's name")
        parser.add_argument("--runs", type=Path, default=runs, help="folder of all runs")
        meaning = "checkpoint or run to resume" if self.command == "fit" else "model to use"
        parser.add_argument("--ckpt_path", type=str | None, help=f"{meaning}: a file or a folder")
        parser.add_lightning_class_args(EarlyStoppingAboveZero, "early_stopping")
        parser.add_lightning_class_args(TranslateValidation, "translations")
        parser.add_lightning_class_args(Monitor, "monitor")
        parser.add_argument(
            "--beam", type=int, default=5, help="beam width of `test`; 1: only greedy search"
        )
        parser.add_argument(
            "--length_penalty",
            type=float,
            default=LENGTH_PENALTY,
            help="of beam search in `test`: log probability / pieces ** length_penalty",
        )
        if self.command == "test":
            parser.add_argument(
                "--input", type=Path | None, help="sentences to translate instead of data.test"
            )
            parser.add_argument(
                "--reference", type=Path | None, help="their translations, line by line"
            )
        parser.link_arguments("model.max_length", "data.max_length")

    def parse_arguments(self, parser: LightningArgumentParser, args: object) -> None:
        for arg in self.arguments:
            if re.search("[\ud800-\udfff]", arg):  # stands for a byte that is not UTF-8
                raise UsageError(f"{arg!r} is not UTF-8: rename the file or folder")
        known = parser.get_defaults().keys()
        try:
            self.config = parser.parse_args(self.arguments)
        except (ArgumentError, UnicodeDecodeError) as error:
            raise UsageError(explain(str(error), self.arguments, known)) from None
        for key in sections(known):
            if not isinstance(value := self.config.get(key), Namespace):
                raise UsageError(f"{key}: expected a section of settings, got {value}")

    def instantiate_classes(self) -> None:
        """Check all sections and report all contradictions at once; `_build` instantiates later."""
        settings = self.config
        faults = check_search(settings.beam, settings.length_penalty)
        for section in ("model", "data", "early_stopping", "translations", "monitor"):
            try:
                self.parser.instantiate(Namespace({section: settings[section]}))
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise UsageError("; ".join(faults))

    # The commands

    def fit(self) -> FitResult:
        """Train. Everything that can be refused is refused before a folder is made.

        Raises:
            UserError: bad data, or training that diverges.
            KeyboardInterrupt: after Ctrl-C; the log says how to resume.
        """
        settings = self.config
        if settings.ckpt_path:
            self.resumed = Resumed.read(Path(settings.ckpt_path))
            self.folder = RunFolder.of_checkpoint(self.resumed.path)
        if self.folder is None:
            name = settings.name or (Path(settings.config[-1]).stem if settings.config else "run")
            self.folder = RunFolder.new(settings.runs, name)
        self._build()
        self._check()
        if not self.trainer.fast_dev_run:
            settings.name = self.folder.path.parent.name  # not that of config.yaml
            self.folder.save_config(self.parser.dump(settings, skip_unset=False))
        started = time.monotonic()
        try:
            with _errors_of_lightning():
                self.trainer.fit(self.model, self.datamodule, ckpt_path=settings.ckpt_path)
        except KeyboardInterrupt:
            if (self.folder.checkpoints / "last.ckpt").is_file():
                logger.info("interrupted; to resume: %s", self.folder.resume_command())
            else:
                logger.info("interrupted before the first checkpoint: nothing to resume from")
            raise
        return self._finish(round(time.monotonic() - started, 1))

    def validate(self) -> dict[str, float]:
        """Return loss and scores on the validation data, by name; log sample translations."""
        trained = _load(self.config.ckpt_path)
        self._build()
        self.model.use(trained.model, trained.tokenizer)
        self.datamodule.tokenizer = trained.tokenizer
        self.datamodule.max_length = trained.model.config.max_length
        with _errors_of_lightning():
            self.trainer.validate(self.model, datamodule=self.datamodule, verbose=False)
        metrics = self.trainer.callback_metrics
        return {name: float(value) for name, value in sorted(metrics.items())}

    def test(self) -> Iterator[str]:
        """Yield the tables of the test set and of the challenge files, or of --input; save both."""
        settings = self.config
        given = read_files(settings.input, settings.reference)
        trained = _load(settings.ckpt_path)
        self._build()
        model = trained.model.to(self.trainer.strategy.root_device)
        translator = Translator(model, trained.tokenizer)
        yield from report(
            translator,
            self.datamodule.read("test") if given is None else given,
            name="test" if given is None else settings.input.name,
            beam=settings.beam,
            length_penalty=settings.length_penalty,
            checkpoint=trained.path.name,
            results_path=lambda name: results_path(trained.path, name),
        )
        if given is None:
            yield from report_challenges(translator, self.datamodule.challenge_files())

    def _build(self) -> None:
        """Instantiate data, model and Trainer."""
        try:
            with _errors_of_lightning():
                super().instantiate_classes()
        except (ValueError, ModuleNotFoundError) as error:
            raise UsageError(" ".join(str(error).split())) from None

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Add fixed callbacks to those of the config, so that setting one removes none."""
        settings = self.config.trainer
        ours: list[Callback] = [Speed()]
        if settings.enable_progress_bar is not False:
            ours.append(ProgressBar(refresh_rate=5))
        if self.folder and settings.enable_checkpointing is not False:
            self.checkpoints = SaveCheckpoints(self.folder.checkpoints)
            ours.append(self.checkpoints)
        self.trainer_defaults["callbacks"] = ours
        if settings.logger in (None, True):
            kwargs["logger"] = self.folder is not None and RunLogger(
                self.folder,
                updates=lambda: self.trainer.global_step,
                resumed_after=self.resumed.updates if self.resumed else None,
            )
        return super().instantiate_trainer(**kwargs)

    def _check(self) -> None:
        """Refuse what cannot train, before and after the data is read."""
        if self.resumed:
            self.resumed.check_model(self.model.hparams)
            self.resumed.check_left(self.trainer.max_epochs, self.trainer.max_steps)
            self.datamodule.tokenizer = self.resumed.trained.tokenizer
            self.config.ckpt_path = str(self.resumed.path.absolute())
        check_trainer(self.trainer)
        self.datamodule.setup("fit")
        check_trainer(self.trainer, self.datamodule.batches_per_epoch())
        if self.resumed:
            logger.info("resuming after %s updates: %s", self.resumed.updates, self.resumed.path)

    def _finish(self, seconds: float) -> FitResult:
        """Mark the run as finished."""
        if self.trainer.fast_dev_run:
            return FitResult(None, None, [])
        early = self.trainer.early_stopping_callback
        if early is not None and early.wait_count >= early.patience:
            logger.info(
                f"stopped early: {early.patience} validations without a better {early.monitor}"
            )
        score, path, commands = None, None, []
        if isinstance(self.trainer.logger, RunLogger):
            commands.append(self.folder.tensorboard_command())
        if self.checkpoints is not None:
            commands.append(self.folder.decode_command(HEATMAPS[0]))
            score = self.checkpoints.best_score
            if score is None:
                logger.info("no validation took place: no best.ckpt, only last.ckpt")
            else:
                path = self.checkpoints.best_path
            self.folder.save_result(
                {
                    "best_bleu": score,
                    "best_checkpoint": path and str(path),
                    "epochs": self.trainer.current_epoch,
                    "steps": self.trainer.global_step,
                    "seconds": seconds,
                }
            )
        return FitResult(score, path, commands)


@contextlib.contextmanager
def _errors_of_lightning() -> Iterator[None]:
    """Raise UsageError for settings that Lightning refuses, and KeyboardInterrupt after Ctrl-C."""
    try:
        yield
    except MisconfigurationException as error:
        raise UsageError(str(error).splitlines()[0]) from None
    except SystemExit:  # Lightning's answer to Ctrl-C, after which it ignores the signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise KeyboardInterrupt from None


def _load(given: str | None) -> TrainedModel:
    path = find_model(given)
    logger.info("model: %s", path)
    return load_checkpoint(path)
