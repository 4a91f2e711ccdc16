"""`translate fit`, `validate` and `test`: LightningCLI over a YAML file."""

from __future__ import annotations

import re
import signal
import time
from argparse import ArgumentError
from collections.abc import Iterable
from pathlib import Path

from jsonargparse import Namespace
from lightning.pytorch import Trainer
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from translate.decoding.checkpoint import TrainedModel, find_model, load_checkpoint
from translate.decoding.scoring import LENGTH_PENALTY
from translate.decoding.translator import Translator
from translate.errors import UsageError, UserError
from translate.evaluation.report import other_pairs, report, report_challenges
from translate.training import config_types  # noqa: F401 (registers the type of a path)
from translate.training.allocator import keep_freed_memory
from translate.training.callbacks import (
    HEATMAPS,
    ProgressBar,
    StopEarly,
    TranslateValidation,
    checkpoints,
)
from translate.training.config_errors import explain, say, sections, silence_lightning
from translate.training.data import TranslationData
from translate.training.logger import Curves
from translate.training.module import TranslationModule
from translate.training.monitor import LookInside
from translate.training.resume import Resumed
from translate.training.run_folder import RunFolder
from translate.training.settings import check_early_stopping, check_search, check_trainer


class TranslationCLI(LightningCLI):
    """LightningCLI with this program's model, data, callbacks and run folders."""

    def __init__(self, args: list[str]) -> None:
        self.args = args
        # Only the parser of the command that is asked for: each takes a tenth of a second.
        self.command = next((arg for arg in args if arg in ("fit", "validate", "test")), "fit")
        self.folder: RunFolder | None = None
        self.resumed: Resumed | None = None
        settings = {"exit_on_error": False, "allow_abbrev": False}
        super().__init__(
            TranslationModule,
            TranslationData,
            save_config_callback=None,  # `before_fit` saves it beside the run
            seed_everything_default=1,
            trainer_defaults={
                "max_epochs": 50,  # early stopping ends most runs before
                "devices": 1,
                "log_every_n_steps": 10,
                "num_sanity_val_steps": 0,
                "enable_model_summary": False,
                "gradient_clip_val": 1.0,
            },
            parser_kwargs={**settings, self.command: settings},
            auto_configure_optimizers=False,
        )

    def subcommands(self) -> dict[str, set[str]]:
        unused = {"model", "datamodule", "dataloaders", "train_dataloaders", "val_dataloaders"}
        unused |= {"weights_only", "verbose"}
        return {self.command: unused}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        runs = Path("runs").absolute()  # so that a printed config means the same everywhere
        parser.add_argument("--name", type=str, help="folder in runs; default: the config's name")
        parser.add_argument("--runs", type=Path, default=runs, help="folder of all runs")
        parser.add_lightning_class_args(StopEarly, "early_stopping")
        parser.set_defaults(
            {
                "early_stopping.monitor": "val/bleu",
                "early_stopping.mode": "max",
                "early_stopping.patience": 10,
                "early_stopping.check_on_train_epoch_end": False,
            }
        )
        parser.add_lightning_class_args(TranslateValidation, "translations")
        parser.add_lightning_class_args(LookInside, "inside")
        parser.add_argument("--beam", type=int, default=5, help="of `test`; 1 is greedy alone")
        parser.add_argument(
            "--length_penalty",
            type=float,
            default=LENGTH_PENALTY,
            help="of `test`'s beam: log probability / pieces ** length_penalty",
        )
        if self.command == "test":
            parser.add_argument(
                "--input", type=Path | None, help="sentences to score instead of data.test"
            )
            parser.add_argument(
                "--reference", type=Path | None, help="their translations, line by line"
            )
        parser.link_arguments("model.max_length", "data.max_length")

    def parse_arguments(self, parser: LightningArgumentParser, args: object) -> None:
        for arg in self.args:
            if re.search("[\ud800-\udfff]", arg):  # stands for such a byte
                raise UsageError(f"{arg!r} is not UTF-8: rename the file or folder")
        try:
            self.config = parser.parse_args(self.args)
        except (ArgumentError, UnicodeDecodeError) as error:
            raise UsageError(explain(str(error), self.args, self._known())) from None
        for key in sections(self._known()):
            if not isinstance(value := self.config[self.command].get(key), Namespace):
                raise UsageError(f"{key}: a section of settings is expected, not {value}")

    def _known(self) -> Iterable[str]:
        """Every setting there is."""
        return self._parser(self.command).get_defaults().keys()

    def _parse_ckpt_path(self) -> None:
        """Lightning would let settings stored in a checkpoint override the command line."""

    def instantiate_classes(self) -> None:
        self.check_settings()
        try:
            super().instantiate_classes()
        except (ValueError, ModuleNotFoundError) as error:
            raise UsageError(" ".join(str(error).split())) from None

    def check_settings(self) -> None:
        """All contradictions of all sections in one message, before any data is read."""
        parser, settings = self._parser(self.subcommand), self.config[self.subcommand]
        faults = check_early_stopping(settings.early_stopping)
        early_stopping = {} if faults else {"early_stopping": settings.early_stopping}
        for section in ("model", "data", "translations", "inside") if not faults else ():
            try:
                parser.instantiate(Namespace({section: settings[section], **early_stopping}))
            except ValueError as error:
                faults.append(str(error))
        faults += check_search(settings.beam, settings.length_penalty)
        if faults:
            raise UsageError("; ".join(faults))

    def instantiate_trainer(self, **kwargs: object) -> Trainer:
        """Fixed callbacks beside those of the config, so that setting one drops none."""
        settings = self.config[self.subcommand]
        if self.subcommand == "fit":
            self.folder = self._choose_folder(settings)
        ours = []
        if settings.trainer.enable_progress_bar is not False:
            ours.append(ProgressBar(refresh_rate=5))
        self.best = None
        if self.folder and settings.trainer.enable_checkpointing is not False:
            self.best, last = checkpoints(str(self.folder.checkpoints))
            ours += [self.best, last]
        self.trainer_defaults["callbacks"] = ours
        if settings.trainer.logger in (None, True):
            steps = self.resumed.steps if self.resumed else None
            kwargs["logger"] = self.folder is not None and Curves(self.folder, steps)
        trainer = super().instantiate_trainer(**kwargs)
        if isinstance(trainer.logger, Curves):
            trainer.logger.updates = lambda: trainer.global_step
        return trainer

    def _choose_folder(self, settings: Namespace) -> RunFolder:
        if settings.ckpt_path:
            self.resumed = Resumed.read(Path(settings.ckpt_path))
            folder = RunFolder.of_checkpoint(self.resumed.path)
            if folder is not None:
                return folder
        name = settings.name or (Path(settings.config[-1]).stem if settings.config else "run")
        return RunFolder.new(settings.runs, name)

    def before_fit(self) -> None:
        """Everything that can be refused is refused before a folder is made."""
        if self.resumed:
            self.resumed.check_model(self.model.shape, self.model.optimizer)
            self.resumed.check_left(self.trainer.max_epochs, self.trainer.max_steps)
            self.datamodule.tokenizer = self.resumed.bundle.tokenizer
            path = str(self.resumed.path.absolute())
            self.config.fit.ckpt_path = self.config_init.fit.ckpt_path = path
        check_trainer(self.trainer)
        self.datamodule.setup("fit")
        check_trainer(self.trainer, self.datamodule.batches_per_epoch())
        if self.resumed:
            say(f"going on after {self.resumed.steps} updates: {self.resumed.path}")
        if not self.trainer.fast_dev_run:
            self.config.fit.name = self.folder.name  # not that of the file that is written
            self.folder.save_config(self._parser("fit").dump(self.config.fit, skip_none=False))
        self.started = time.monotonic()

    def fit(self, **arguments: object) -> None:
        try:
            self.trainer.fit(**arguments)
        except SystemExit:  # Lightning's answer to Ctrl-C, which it then ignores for good
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if (self.folder.checkpoints / "last.ckpt").is_file():
                say(f"\ntranslate: interrupted; to go on: {self.folder.resume_command()}")
            else:
                say("\ntranslate: interrupted before the first checkpoint: nothing to go on from")
            raise KeyboardInterrupt from None

    def after_fit(self) -> None:
        """Mark the run as finished and say what to do with it."""
        if self.trainer.fast_dev_run:
            return
        early = self.trainer.early_stopping_callback
        if early is not None and early.wait_count >= early.patience:
            say(f"stopped early: {early.patience} validations without a better {early.monitor}")
        if self.best is not None:
            self._save_result()
        if isinstance(self.trainer.logger, Curves):
            print(self.folder.tensorboard_command())
        if self.best is not None:
            print(self.folder.decode_command(HEATMAPS[0]))

    def _save_result(self) -> None:
        best = self.best.best_model_score
        if best is None:
            say("no validation took place: no best.ckpt, only last.ckpt")
        else:
            print(f"best validation BLEU {float(best):.2f}: {self.best.best_model_path}")
        self.folder.save_result(
            {
                "best_bleu": None if best is None else float(best),
                "best_checkpoint": self.best.best_model_path or None,
                "epochs": self.trainer.current_epoch,
                "steps": self.trainer.global_step,
                "seconds": round(time.monotonic() - self.started, 1),
            }
        )

    def validate(self, *, ckpt_path: str | None, **_: object) -> None:
        """Loss, BLEU and sample translations on the validation data."""
        bundle = _announced(ckpt_path)
        self.model.adopt(bundle.model, bundle.tokenizer)
        self.datamodule.tokenizer = bundle.tokenizer
        self.datamodule.max_length = bundle.model.config.max_length
        self.trainer.validate(self.model, datamodule=self.datamodule, verbose=False)
        for name, value in sorted(self.trainer.callback_metrics.items()):
            print(f"{name:<16} {float(value):.4f}")

    def test(self, *, ckpt_path: str | None, **_: object) -> None:
        """Scores of the test set and of each challenge file, or of other files."""
        settings = self.config.test
        others = other_pairs(settings.input, settings.reference)
        bundle = _announced(ckpt_path)
        model = bundle.model.to(self.trainer.strategy.root_device)
        translator = Translator(model, bundle.tokenizer)
        report(
            translator,
            self.datamodule.read("test") if others is None else others,
            name="test" if others is None else settings.input.name,
            checkpoint=bundle.path,
            beam=settings.beam,
            length_penalty=settings.length_penalty,
        )
        if others is None:
            report_challenges(translator, self.datamodule.challenge_files())


class _OnlySettings(TranslationCLI):
    """Stops after the settings have been parsed and checked."""

    def instantiate_classes(self) -> None:
        self.check_settings()

    def _run_subcommand(self, subcommand: str) -> None:
        pass


def parse_settings(args: list[str]) -> Namespace:
    """The settings of `fit` with these arguments, parsed and checked; nothing is instantiated.

    Raises:
        UsageError: with all that is wrong.
    """
    silence_lightning()
    return _OnlySettings(["fit", *args]).config.fit


def _announced(given: str | None) -> TrainedModel:
    """The model meant, said on stderr."""
    path = find_model(given)
    say(f"model: {path}")
    return load_checkpoint(path)


def main(argv: list[str]) -> int:
    """Run `fit`, `validate` or `test` with LightningCLI's arguments; returns the exit code."""
    silence_lightning()
    keep_freed_memory()
    try:
        TranslationCLI(argv)
    except UserError as error:
        say(f"translate: {error}")
        return error.exit_code
    except MisconfigurationException as error:
        say(f"translate: {str(error).splitlines()[0]}")
        return UsageError.exit_code
    except KeyboardInterrupt:
        return 130
    except SystemExit as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):  # so Lightning ends a validation
            return 130
        raise
    return 0
