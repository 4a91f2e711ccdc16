"""The callback that translates the validation set: scores, sample translations, heatmaps."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lightning.pytorch.callbacks import Callback

from translate.decoding.translator import Translator
from translate.evaluation.evaluate import evaluate
from translate.insight.attention import attention_maps
from translate.insight.plots import attention_heatmap, pixels
from translate.text.normalize import normalize
from translate.training.batching import spread
from translate.training.logger import show_text, tensorboard_writer

logger = logging.getLogger(__name__)

# A short sentence, a sentence whose "it" refers to an earlier noun, and a question.
HEATMAPS = (
    "This is an example",
    "The dog chased the ball because it rolled away.",
    "Where is the book?",
)


class TranslateValidation(Callback):
    """Callback that translates the validation sources, scores the translations and shows some.

    The model gets only the sources. References are used only for scoring.

    Args:
        samples: translations to show each time, spread evenly over the validation set.
        heatmaps: sentences whose cross-attention is drawn; [] draws none.
    """

    def __init__(self, samples: int = 3, heatmaps: Sequence[str] = HEATMAPS) -> None:
        if samples < 0:
            raise ValueError(f"translations.samples must be 0 or more, not {samples}")
        self.samples = samples
        self.heatmaps = [sentence for sentence in heatmaps if normalize(sentence)]

    def on_validation_epoch_end(self, trainer, pl_module) -> None:
        pairs = trainer.datamodule.valid_pairs
        translator = Translator(pl_module.model, pl_module.tokenizer)
        result = evaluate(translator, pairs)
        scores = result.scores
        values = {"bleu": scores.bleu, "chrf": scores.chrf, "exact_match": scores.exact_share}
        values |= {name: count / scores.sentences for name, count in result.counts.items()}
        for name, value in values.items():
            pl_module.log(f"val/{name}", value, batch_size=scores.sentences)
        step = f"step {trainer.global_step}: " if trainer.state.fn == "fit" else ""
        heading = (
            f"{step}BLEU {scores.bleu:.1f}, chrF {scores.chrf:.1f}, "
            f"exactly right {scores.exact} of {scores.sentences}"
        )
        blocks = ["\n".join([heading, *result.notes])]
        for pair, output in spread(list(zip(pairs, result.outputs, strict=True)), self.samples):
            source, reference = map(normalize, pair)  # one line, whatever the file contains
            blocks.append(f"source     {source}\noutput     {output}\nreference  {reference}")
        text = "\n\n".join(blocks)
        logger.info("%s\n", text)
        show_text(trainer, "translations", text)
        if self.heatmaps and tensorboard_writer(trainer):
            self._draw(trainer, translator)

    def _draw(self, trainer, translator: Translator) -> None:
        model, tokenizer = translator.model, translator.tokenizer
        step, writer = trainer.global_step, tensorboard_writer(trainer)
        drawn = zip(self.heatmaps, translator.translate_detailed(self.heatmaps), strict=True)
        for number, (sentence, translation) in enumerate(drawn, 1):
            maps = attention_maps(model, tokenizer, tokenizer.encode(sentence), translation.ids)
            heatmap = attention_heatmap(maps, f"{sentence} (step {step})", scale=False)
            tag = f"translation/cross_attention_{number}"
            writer.add_image(tag, pixels(heatmap), step, dataformats="HWC")
