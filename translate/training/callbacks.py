"""What happens around training: progress, translations to look at, and what is left on disk."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from tqdm import tqdm

from translate.decoding.translator import Translator
from translate.evaluation.evaluate import evaluate
from translate.evaluation.scores import Scores
from translate.insight.attention import attention_maps
from translate.insight.plots import attention_heatmap, pixels
from translate.text.normalize import normalize

# A first sentence, one whose "it" must look back, and a question.
HEATMAPS = (
    "This is an example",
    "The dog chased the ball because it rolled away.",
    "Where is the book?",
)


class ProgressBar(TQDMProgressBar):
    """Loss, learning rate and target tokens a second beside the bar."""

    def init_train_tqdm(self):
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            return super().init_train_tqdm()

    def init_validation_tqdm(self):
        with contextlib.redirect_stdout(sys.stderr):
            return super().init_validation_tqdm()

    def on_train_start(self, trainer, pl_module) -> None:
        """A run that goes on inside an epoch says which, and where, as one that began it would."""
        super().on_train_start(trainer, pl_module)
        if trainer.fit_loop.restarted_mid_epoch:  # Lightning starts no bar for such an epoch
            self.on_train_epoch_start(trainer, pl_module)
            bar = self.train_progress_bar
            bar.n = bar.initial = trainer.fit_loop.epoch_loop.batch_progress.current.ready

    def on_train_epoch_start(self, trainer, pl_module) -> None:
        self.train_progress_bar.initial = 0  # before it is reset, which shows a rate
        super().on_train_epoch_start(trainer, pl_module)

    def get_metrics(self, trainer, pl_module) -> dict[str, str]:
        values = trainer.progress_bar_metrics
        shown = {}
        if "train/loss" in values:
            shown["loss"] = f"{values['train/loss']:.3f}"
        if "train/learning_rate" in values:
            shown["rate"] = f"{values['train/learning_rate']:.1e}"
        if "train/tokens_per_second" in values:
            shown["tokens/s"] = f"{values['train/tokens_per_second']:,.0f}"
        if "val/bleu" in values:
            shown["BLEU"] = f"{values['val/bleu']:.1f}"
        return shown


class StopEarly(EarlyStopping):
    """Patience begins when BLEU has left zero, where it stays for the first epochs of few pairs."""

    BEGUN = 1.0  # BLEU

    def on_validation_end(self, trainer, pl_module) -> None:
        bleu = trainer.callback_metrics.get("val/bleu", self.BEGUN)
        if self.monitor != "val/bleu" or max(bleu, self.best_score) >= self.BEGUN:
            super().on_validation_end(trainer, pl_module)


class TranslateValidation(Callback):
    """After each validation: translate the validation sources, score them, show some.

    The model gets the source alone. References are used only to score what came out.

    Args:
        samples: translations to show each time, spread evenly over the validation set.
        heatmaps: sentences whose cross-attention is drawn; [] draws none.
    """

    def __init__(self, samples: int = 3, heatmaps: Sequence[str] = HEATMAPS) -> None:
        if samples < 0:
            raise ValueError(f"samples must be 0 or more, not {samples}")
        self.samples = samples
        self.heatmaps = [sentence for sentence in heatmaps if normalize(sentence)]

    def on_validation_epoch_end(self, trainer, pl_module) -> None:
        pairs = trainer.datamodule.valid_pairs
        translator = Translator(pl_module.model, pl_module.tokenizer)
        result = evaluate(translator, pairs)
        scores = result.scores
        pl_module.log("val/bleu", scores.bleu, prog_bar=True, batch_size=scores.sentences)
        pl_module.log("val/chrf", scores.chrf, batch_size=scores.sentences)
        pl_module.log("val/exact_match", scores.exact_share, batch_size=scores.sentences)
        self._show(trainer, [_heading(trainer, scores), *result.notes], pairs, result.outputs)
        for name, count in result.counts.items():
            pl_module.log(f"val/{name}", count / scores.sentences, batch_size=scores.sentences)
        if isinstance(trainer.logger, TensorBoardLogger) and self.heatmaps:
            self._draw(trainer, pl_module, translator)

    def _show(self, trainer, lines: list[str], pairs: list, outputs: list[str]) -> None:
        count = min(self.samples, len(pairs))
        chosen = [i * len(pairs) // count for i in range(count)]
        blocks = [
            f"source     {normalize(pairs[i].source)}\n"  # a line, whatever the file has in it
            f"output     {outputs[i]}\n"
            f"reference  {normalize(pairs[i].target)}"
            for i in chosen
        ]
        text = "\n\n".join(["\n".join(lines), *blocks])
        tqdm.write(text + "\n", file=sys.stderr)  # above the progress bar, not through it
        if isinstance(trainer.logger, TensorBoardLogger):
            # Indented by four spaces it is a code block: no sign of a sentence becomes markup.
            code = "\n".join(f"    {line}" for line in text.split("\n"))
            trainer.logger.experiment.add_text("translations", code, trainer.global_step)

    def _draw(self, trainer, pl_module, translator: Translator) -> None:
        translations = translator.translate_detailed(self.heatmaps)
        for number, (sentence, translation) in enumerate(
            zip(self.heatmaps, translations, strict=True), 1
        ):
            source = pl_module.tokenizer.encode(sentence)
            maps = attention_maps(pl_module.model, pl_module.tokenizer, source, translation.ids)
            title = f"{sentence} (step {trainer.global_step})"
            figure = attention_heatmap(maps, title, scale=False)
            trainer.logger.experiment.add_image(
                f"translation/cross_attention_{number}",
                pixels(figure),
                trainer.global_step,
                dataformats="HWC",
            )


def _heading(trainer, scores: Scores) -> str:
    step = f"step {trainer.global_step}: " if trainer.state.fn == "fit" else ""
    return (
        f"{step}BLEU {scores.bleu:.1f}, chrF {scores.chrf:.1f}, "
        f"exactly right {scores.exact} of {scores.sentences}"
    )


class LastCheckpoint(ModelCheckpoint):
    """last.ckpt after every validation, and after every epoch that ends without one."""

    def on_train_epoch_end(self, trainer, pl_module) -> None:
        if self._last_global_step_saved != trainer.global_step and not trainer.fast_dev_run:
            self._save_topk_checkpoint(trainer, self._monitor_candidates(trainer))


def checkpoints(folder: str) -> tuple[ModelCheckpoint, LastCheckpoint]:
    """best.ckpt by validation BLEU, and last.ckpt.

    Two callbacks, because Lightning's `save_last` writes only when there is a new best. The best
    comes first, so that last.ckpt knows of it and a resumed run keeps it.
    """
    common = {"dirpath": folder, "enable_version_counter": False, "save_on_train_epoch_end": False}
    return (
        ModelCheckpoint(filename="best", monitor="val/bleu", mode="max", **common),
        LastCheckpoint(filename="last", **common),
    )
