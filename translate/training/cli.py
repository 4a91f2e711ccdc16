"""`translate fit`, `validate` and `test`: read the settings, then train or score a model."""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from jsonargparse import Namespace
from lightning import Callback, Trainer
from lightning.pytorch.callbacks import ProgressBar as LightningBar
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from translate.decoding.checkpoint import TrainedModel
from translate.decoding.find_model import load_model
from translate.decoding.scoring import LENGTH_PENALTY, MAX_BEAM, MAX_LENGTH_PENALTY
from translate.decoding.translator import Translator
from translate.errors import UsageError, WriteError
from translate.evaluation.report import report, report_challenges
from translate.text.corpus import Pair
from translate.training.callbacks import (
    EarlyStoppingAboveZero,
    ProgressBar,
    ProgressLines,
    SaveCheckpoints,
    Speed,
)
from translate.training.checkpoint_io import AtomicCheckpointIO
from translate.training.config_parser import ConfigParser
from translate.training.config_types import allow_packages
from translate.training.data import TranslationData, read_files
from translate.training.help import HelpfulParser
from translate.training.logger import RunLogger
from translate.training.module import TranslationModule
from translate.training.monitor import Monitor
from translate.training.resume import Resumed, seconds_left
from translate.training.run_folder import RunFolder, results_path
from translate.training.run_record import comparable, environment
from translate.training.run_split import check_split, use_split
from translate.training.settings import CommandSettings, TestSettings, out_of_range
from translate.training.silence import silence_lightning
from translate.training.stop_signals import StoppedBySignal, StopSignals
from translate.training.trainer_checks import BatchLimitTrainer, check_options, check_trainer
from translate.training.validation import HEATMAPS, TranslateValidation

logger = logging.getLogger(__name__)

MAX_SEED = 2**32 - 1  # Lightning seeds NumPy too, which takes 32 bits

# A full disk, a quota, a limit on the size of files, a disk that became read-only, a broken disk.
DISK_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}

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
        allow_packages()
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
            parser_class=HelpfulParser,
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

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse the command line and its config files; `instantiate_classes` reports faults."""
        if isinstance(parser, HelpfulParser) and {"-h", "--help"} & set(args):
            parser.show_all = args[-1] == "all"
            parser.print_help()
            parser.exit()
        self.settings = ConfigParser(parser, args)
        self.config = self.settings.config
        seed = self.config.seed_everything  # true draws one, false sets none
        if not 0 <= seed <= MAX_SEED:
            self.settings.refuse(f"seed_everything must be from 0 to {MAX_SEED:,}, not {seed}")
            self.config.seed_everything = False

    def instantiate_classes(self) -> None:
        """Build model, data and callbacks, or report all invalid settings, one per line."""
        highest = {"beam": MAX_BEAM, "length_penalty": MAX_LENGTH_PENALTY}
        faults = out_of_range(vars(self.config), {"beam": 1, "length_penalty": 0}, highest)
        parts = []
        for name in ("model", "data", *CALLBACKS):
            try:
                parts.append(self.parser.instantiate(Namespace({name: self.config[name]}))[name])
            except ValueError as error:
                faults += str(error).split("; ")
        for fault in faults:
            self.settings.refuse(fault)
        if self.settings.faulty and self.command == "fit":  # `fit` checks the Trainer later
            self.callbacks: list[Callback] = []
            try:
                check_trainer(self.make_trainer())
            except Exception as error:  # Lightning checks its settings in many ways
                for fault in re.split("; |\n", str(error).strip()):
                    self.settings.refuse(fault)
        self.settings.check()
        self.model, self.datamodule, *self.callbacks = parts

    def fit(self) -> list[str]:
        """Train the model; check settings and data before creating the run folder.

        With --ckpt_path, the run of the checkpoint goes on. Another name, folder or corpus gives a
        new run, which starts from the weights of the checkpoint.

        Raises:
            UserError: the data is bad, training diverges, or a file cannot be written.
            KeyboardInterrupt: after Ctrl-C or SIGTERM; the log says how to resume.
        """
        config, data = self.config, self.datamodule
        resumed = Resumed.read(Path(config.ckpt_path)) if config.ckpt_path else None
        folder = resumed.folder() if resumed else None
        new_run = folder.other_place(config.name, config.runs) if folder else ""  # the reason
        if folder is None or new_run:
            folder = self._new_folder()
        checkpoints = self._prepare(folder, resumed.updates if resumed and not new_run else None)
        check_trainer(self.trainer)
        if not self.trainer.fast_dev_run:
            folder.check_writable()
        if resumed:
            resumed.check_model(self.model.hparams)
            if not new_run and (folder.is_finished(resumed.updates) or not folder.resumed):
                resumed.check_limits(self.trainer)
            data.trained_tokenizer = resumed.trained.tokenizer
        data.challenge_files()  # a wrong folder is refused now, not by `test`
        data.setup("fit")
        if resumed and not new_run and (new_run := resumed.other_data(data.sha256)):
            folder = self._new_folder()
            checkpoints = self._prepare(folder, None)
        check_trainer(self.trainer, len(data.train_sampler), len(data.val_dataloader()))
        self.model.build(data.trained_tokenizer)
        self.model.run_record = self._record(folder)
        start = self._start(resumed, new_run, folder) if resumed else None
        if not self.trainer.fast_dev_run:
            config.name = folder.path.parent.name  # config.yaml may have another name
            config.runs = folder.path.parent.parent.absolute()
            text = self.parser.dump(config, skip_unset=False)
            folder.save_config(text, self.model.run_record)
        started = time.monotonic()
        try:
            with _lightning():
                self.trainer.fit(self.model, data, ckpt_path=start)
            if self.trainer.fast_dev_run:
                return []
            return self._finish(folder, checkpoints, time.monotonic() - started)
        except (KeyboardInterrupt, StoppedBySignal):
            if checkpoints.last_path.is_file():
                logger.info("interrupted; to resume: %s", folder.resume_command())
            else:
                logger.info("interrupted before the first checkpoint: nothing to resume from")
            raise KeyboardInterrupt from None
        except (WriteError, OSError) as error:
            if isinstance(error, OSError):  # of TensorBoard
                if error.errno not in DISK_FAULTS:
                    raise
                error = WriteError(f"cannot write events to {folder.path}: {error.strerror}")
            resume = "there is no checkpoint yet: start again"
            if checkpoints.last_path.is_file():
                resume = f"resume: {folder.resume_command()}"
            raise WriteError(f"{error}; when files can be written there again, {resume}") from None

    def _new_folder(self) -> RunFolder:
        config = self.config
        name = config.name or (Path(config.config[-1]).stem if config.config else "run")
        return RunFolder.new(config.runs or Path("runs").absolute(), name)

    def _prepare(self, folder: RunFolder, resumed_after: int | None) -> SaveCheckpoints:
        """Make the trainer of a run in `folder`; return its callback for checkpoints."""
        checkpoints = SaveCheckpoints(folder.checkpoints, same_run=folder.resumed)
        run_logger = RunLogger(folder, lambda: self.trainer.global_step, resumed_after)
        self.trainer = self.make_trainer(run_logger, checkpoints)
        self.trainer.strategy.checkpoint_io = AtomicCheckpointIO()
        self.trainer.callbacks.insert(0, StopSignals(checkpoints))
        return checkpoints

    def _record(self, folder: RunFolder) -> dict[str, Any]:
        """Return what run.json and the checkpoints say about the run."""
        settings = yaml.safe_load(self.parser.dump(self.config, skip_unset=False))
        sha256 = {**self.datamodule.sha256, "tokenizer": self.model.tokenizer.fingerprint()}
        device, precision = self.trainer.strategy.root_device, str(self.trainer.precision)
        return {
            "id": (folder.run_id if folder.resumed else None) or uuid.uuid4().hex,
            "seed": self.datamodule.seed,
            "environment": environment(device, precision),
            "sha256": sha256,
            "settings": comparable(settings),
        }

    def _start(self, resumed: Resumed, new_run: str, folder: RunFolder) -> str | None:
        """Start from a checkpoint and log what changes; return what Lightning has to restore."""
        record = self.model.run_record
        if new_run:
            logger.info(
                f"new run {folder.path}: it starts from the weights of {resumed.path}, with a new "
                f"optimizer and learning rate schedule, because {new_run}"
            )
            self.model.model.load_state_dict(resumed.trained.model.state_dict())
        else:
            logger.info("resuming after %s updates: %s", resumed.updates, resumed.path)
            self.config.ckpt_path = str(resumed.path.absolute())
        changed = resumed.changed_settings(record)
        if changed:
            changes = ", ".join(f"{name} {change}" for name, change in changed.items())
            logger.info("settings changed since the checkpoint: %s", changes)
        if new_run:
            return None
        for note in resumed.notes(record):
            logger.warning(note)
        if resumed.restarts_epoch(changed):
            self.model.restarts_epoch = True
            logger.warning(
                f"epoch {resumed.training['epochs'] + 1} starts again: the changed settings give "
                "it other batches"
            )
        return self.config.ckpt_path

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
        if seconds_left(self.trainer) <= 0:
            logger.info("stopped by trainer.max_time after %s updates", self.trainer.global_step)
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
                    "epochs": self.model.complete_epochs,
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


@contextlib.contextmanager
def _lightning() -> Iterator[None]:
    """Keep Lightning's progress bars out of standard output, and turn its errors into ours.

    Raises:
        UsageError: settings that Lightning refuses.
        KeyboardInterrupt: Ctrl-C.
    """
    hook = threading.excepthook

    def thread_failed(failure: threading.ExceptHookArgs) -> None:
        """Hide the disk faults of TensorBoard's thread: it raises them in the main thread too."""
        if getattr(failure.exc_value, "errno", None) not in DISK_FAULTS:
            hook(failure)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threading.excepthook = thread_failed
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except MisconfigurationException as error:
        raise UsageError(str(error).splitlines()[0]) from None
    except SystemExit:  # Lightning exits on Ctrl-C
        raise KeyboardInterrupt from None
    finally:
        threading.excepthook = hook
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():  # Lightning does not always restore them
                signal.signal(number, handler)
