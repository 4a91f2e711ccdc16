"""`translate fit`, `validate` and `test`: read the settings, then train or score a model."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import sys
import time
from argparse import ArgumentError
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from jsonargparse import Namespace
from lightning import Trainer
from lightning.pytorch.callbacks import ProgressBar as LightningBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from translate.decoding.checkpoint import TrainedModel
from translate.decoding.find_model import load_model
from translate.decoding.scoring import LENGTH_PENALTY, MAX_BEAM, MAX_LENGTH_PENALTY
from translate.decoding.translator import Translator
from translate.errors import UsageError
from translate.evaluation.report import report, report_challenges
from translate.text.corpus import Pair
from translate.training import config_types  # noqa: F401 (registers the type of a path)
from translate.training.callbacks import (
    EarlyStoppingAboveZero,
    ProgressBar,
    ProgressLines,
    SaveCheckpoints,
    Speed,
)
from translate.training.config_errors import explain, section_names
from translate.training.data import TranslationData, read_files
from translate.training.logger import RunLogger
from translate.training.module import TranslationModule
from translate.training.monitor import Monitor
from translate.training.resume import Resumed
from translate.training.run_folder import RunFolder, results_path
from translate.training.run_split import check_split, use_split
from translate.training.settings import CommandSettings, TestSettings, out_of_range
from translate.training.silence import silence_lightning
from translate.training.trainer_checks import BatchLimitTrainer, check_options, check_trainer
from translate.training.validation import HEATMAPS, TranslateValidation

logger = logging.getLogger(__name__)

MAX_SEED = 2**32 - 1  # Lightning seeds NumPy too, which takes 32 bits

# Callbacks with a section of settings.
CALLBACKS = {
    "early_stopping": EarlyStoppingAboveZero,
    "translations": TranslateValidation,
    "monitor": Monitor,
}


class TranslationCLI(LightningCLI):
    """One command: its settings, its model and data and, while the command runs, its Trainer.

    The constructor parses and checks the settings. `fit`, `validate` and `test` do the work and
    return the lines of standard output.

    Args:
        command: "fit", "validate" or "test".
        args: the command line after the command.
        module_class: class to train; a subclass can override `build_model` or parts of an update.

    Raises:
        UsageError: invalid settings, explained in one line.
    """

    trainer: Trainer

    def __init__(
        self,
        command: str,
        args: list[str],
        module_class: type[TranslationModule] = TranslationModule,
    ) -> None:
        silence_lightning()
        self.command = command
        super().__init__(
            module_class,
            TranslationData,
            args=args,
            run=False,
            trainer_class=BatchLimitTrainer,
            save_config_callback=None,  # `fit` saves the settings in the run folder
            seed_everything_default=1,
            auto_configure_optimizers=False,
            load_from_checkpoint_support=False,
            trainer_defaults={
                # "auto" would choose Apple's MPS, on which this program has never been tried.
                "accelerator": "cpu" if torch.backends.mps.is_available() else "auto",
                "max_epochs": 50,  # early stopping ends most runs earlier
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
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the settings of the command and of our callbacks."""
        parser.add_class_arguments(TestSettings if self.command == "test" else CommandSettings)
        for name, callback in CALLBACKS.items():
            parser.add_lightning_class_args(callback, name)
        parser.link_arguments("model.max_length", "data.max_length")
        # An absolute path, so that a printed config works in every folder.
        parser.set_defaults({"runs": Path("runs").absolute()})

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse the command line and its config files."""
        self.config = _parse(parser, args)
        seed = self.config.seed_everything  # true draws one, false sets none
        if not 0 <= seed <= MAX_SEED:
            raise UsageError(f"seed_everything must be from 0 to {MAX_SEED:,}, not {seed}")

    def instantiate_classes(self) -> None:
        """Build model, data and callbacks, or report all invalid settings in one message."""
        highest = {"beam": MAX_BEAM, "length_penalty": MAX_LENGTH_PENALTY}
        faults = out_of_range(vars(self.config), {"beam": 1, "length_penalty": 0}, highest)
        parts = []
        for name in ("model", "data", *CALLBACKS):
            try:
                parts.append(self.parser.instantiate(Namespace({name: self.config[name]}))[name])
            except ValueError as error:
                faults.append(str(error))
        if faults:
            raise UsageError("; ".join(faults))
        self.model, self.datamodule, *self.callbacks = parts

    def fit(self) -> list[str]:
        """Train the model; check settings and data before creating the run folder.

        Raises:
            UserError: the data is bad, or training diverges.
            KeyboardInterrupt: after Ctrl-C; the log says how to resume.
        """
        config, resumed, folder = self.config, None, None
        if config.ckpt_path:
            resumed = Resumed.read(Path(config.ckpt_path))
            folder = RunFolder.of_checkpoint(resumed.path)
        if folder is None:
            name = config.name or (Path(config.config[-1]).stem if config.config else "run")
            folder = RunFolder.new(config.runs, name)
        checkpoints = SaveCheckpoints(folder.checkpoints)
        resumed_after = resumed.updates if resumed else None
        run_logger = RunLogger(folder, lambda: self.trainer.global_step, resumed_after)
        trainer = self.trainer = self.make_trainer(run_logger, checkpoints)
        check_trainer(trainer)
        if not trainer.fast_dev_run:
            folder.check_writable()
        if resumed:
            resumed.check(self.model.hparams, trainer)
            self.datamodule.trained_tokenizer = resumed.trained.tokenizer
            config.ckpt_path = str(resumed.path.absolute())
            logger.info("resuming after %s updates: %s", resumed.updates, resumed.path)
        self.datamodule.challenge_files()  # a wrong folder is refused now, not by `test`
        self.datamodule.setup("fit")
        batches = len(self.datamodule.train_sampler), len(self.datamodule.val_dataloader())
        check_trainer(trainer, *batches)
        self.model.build(self.datamodule.trained_tokenizer)
        if not trainer.fast_dev_run:
            config.name = folder.path.parent.name  # config.yaml may have another name
            folder.save_config(self.parser.dump(config, skip_unset=False))
        started = time.monotonic()
        try:
            with _lightning():
                trainer.fit(self.model, self.datamodule, ckpt_path=config.ckpt_path)
        except KeyboardInterrupt:
            if checkpoints.last_path.is_file():
                logger.info("interrupted; to resume: %s", folder.resume_command())
            else:
                logger.info("interrupted before the first checkpoint: nothing to resume from")
            raise
        if trainer.fast_dev_run:
            return []
        return self._finish(folder, checkpoints, time.monotonic() - started)

    def validate(self) -> list[str]:
        """Return loss and scores on the validation data, by name; log sample translations."""
        trained = load_model(self.config.ckpt_path)
        self.trainer = self.make_trainer()
        self.model.use(trained.model, trained.tokenizer)
        self.datamodule.trained_tokenizer = trained.tokenizer
        self.datamodule.max_length = trained.model.config.max_length
        use_split(self.datamodule, trained)
        self.datamodule.setup("validate")
        self._check_split("valid", self.datamodule.valid_pairs, trained)
        with _lightning():
            self.trainer.validate(self.model, datamodule=self.datamodule, verbose=False)
        metrics = sorted(self.trainer.callback_metrics.items())
        width = max(map(len, self.trainer.callback_metrics))
        return [f"{name:<{width}}  {float(value):.4f}" for name, value in metrics]

    def test(self) -> Iterator[str]:
        """Yield the tables of the test set and of the challenge files, or of --input; save them."""
        config = self.config
        given = read_files(config.input, config.reference)
        if config.beam == 1 and config.length_penalty != LENGTH_PENALTY:
            logger.warning("length_penalty has no effect with beam 1, which is greedy search")
        trained = load_model(config.ckpt_path)
        if given is None:
            use_split(self.datamodule, trained)
            pairs, name = self.datamodule.read("test"), "test"
            self._check_split("test", pairs, trained)
        else:
            pairs, name = given, config.input.name
        model = trained.model.to(self.make_trainer().strategy.root_device)
        translator = Translator(model, trained.tokenizer)
        yield from report(
            translator,
            pairs,
            name=name,
            beam=config.beam,
            length_penalty=config.length_penalty,
            checkpoint=trained.path.name,
            results_path=lambda name: results_path(trained.path, name),
        )
        if given is None:
            yield from report_challenges(translator, self.datamodule.challenge_files())

    def _check_split(self, name: str, pairs: Sequence[Pair], trained: TrainedModel) -> None:
        def read_config(path: Path) -> TranslationData:
            return TranslationCLI(self.command, ["--config", str(path)]).datamodule

        check_split(self.datamodule, name, pairs, trained, read_config)

    def make_trainer(
        self, run_logger: RunLogger | None = None, checkpoints: SaveCheckpoints | None = None
    ) -> Trainer:
        """Return a Trainer with our callbacks and, in addition, the callbacks of the config.

        Raises:
            UsageError: settings that Lightning refuses.
        """
        try:
            options = self.parser.instantiate(Namespace(trainer=self.config.trainer)).trainer
            given = options.callbacks or []
            options.callbacks = given if isinstance(given, list) else [given]
            check_options(options, self.config)
            # The user's callbacks come after ours, so that the averaged weights of
            # EMAWeightAveraging are still in place while the validation set is translated.
            options.callbacks = [*self.callbacks, Speed(), *options.callbacks]
            own_bar = any(isinstance(callback, LightningBar) for callback in options.callbacks)
            if options.enable_progress_bar is not False and not own_bar:
                # Without a terminal, a bar would fill a log file with its refreshes.
                options.enable_progress_bar = sys.stderr.isatty()
                progress = ProgressBar(refresh_rate=5) if sys.stderr.isatty() else ProgressLines()
                options.callbacks.append(progress)
            if checkpoints and options.enable_checkpointing is not False:
                options.callbacks.append(checkpoints)
            if run_logger:
                options.default_root_dir = run_logger.log_dir
            if options.logger in (None, True):
                options.logger = run_logger or False
            # One process: inside SLURM or MPI, Lightning would look for others.
            options.plugins = [LightningEnvironment()]
            with _lightning():
                return BatchLimitTrainer(**vars(options))
        except (ValueError, TypeError, RuntimeError, ModuleNotFoundError) as error:
            raise UsageError(f"trainer: {_reason(error)}") from None

    def _finish(self, folder: RunFolder, checkpoints: SaveCheckpoints, seconds: float) -> list[str]:
        """Save the result, which marks the run as finished; return the lines to print."""
        early = self.trainer.early_stopping_callback
        if early is not None and early.wait_count >= early.patience:
            count, metric = early.patience, early.monitor
            logger.info("stopped early: %s validations without a better %s", count, metric)
        lines = []
        if isinstance(self.trainer.logger, RunLogger):
            lines.append(folder.tensorboard_command())
        if checkpoints in self.trainer.checkpoint_callbacks:
            lines.append(folder.decode_command(HEATMAPS[0]))
            score, best = checkpoints.best_score, checkpoints.best_path
            if score is None:
                logger.info("no validation took place: no best.ckpt, only last.ckpt")
            else:
                lines.insert(0, f"best validation BLEU {score:.2f}: {best}")
            folder.save_result(
                {
                    "best_bleu": score,
                    "best_checkpoint": None if score is None else str(best),
                    "epochs": self.trainer.current_epoch,
                    "steps": self.trainer.global_step,
                    "seconds": round(seconds, 1),
                }
            )
        return lines


def _reason(error: Exception) -> str:
    """Return in one line why the Trainer or one of its objects cannot be made.

    jsonargparse adds the reasons against each type that a setting may have. The first reason is
    that of the object.
    """
    reasons = re.split(r"\n +- ", str(error))
    reason = " ".join(reasons[min(1, len(reasons) - 1)].split())
    return re.sub(r"^Problem with given class_path '(.*?)':", r"\1:", reason)


def _parse(parser: LightningArgumentParser, args: list[str]) -> Namespace:
    """Return the settings, or raise UsageError with what is wrong and where."""
    for arg in args:
        if re.search("[\ud800-\udfff]", arg):  # stands for a byte that is not UTF-8
            raise UsageError(f"{arg!r} is not UTF-8: rename the file or folder")
    known = parser.get_defaults().keys()
    try:
        config = parser.parse_args(args)
    except (ArgumentError, UnicodeDecodeError) as error:
        raise UsageError(explain(str(error), args, known)) from None
    for name in section_names(known):
        if not isinstance(value := config.get(name), Namespace):
            raise UsageError(f"{name}: expected a section of settings, got {value}")
    return config


@contextlib.contextmanager
def _lightning() -> Iterator[None]:
    """Keep Lightning's progress bars out of standard output, and turn its errors into ours.

    Raises:
        UsageError: settings that Lightning refuses.
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except MisconfigurationException as error:
        raise UsageError(str(error).splitlines()[0]) from None
    except SystemExit:  # Lightning exits on Ctrl-C, and ignores the signal from then on
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise KeyboardInterrupt from None
