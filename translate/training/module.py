"""The LightningModule: what happens to one batch and what is logged of it."""

from __future__ import annotations

import math
import time
from typing import Any, Literal

import lightning
import torch
from torch import Tensor

from translate.decoding.checkpoint import checkpoint_entry
from translate.errors import UserError
from translate.model.transformer import Transformer, TransformerConfig
from translate.text.tokenizer import Tokenizer
from translate.training.batching import Batch
from translate.training.objective import Loss, label_smoothed_cross_entropy
from translate.training.optimizer import MuonAdamW
from translate.training.resume import make_resumable
from translate.training.schedule import learning_rate

# What a validation logs, and which direction is the better one.
VALIDATION_METRICS = {
    "val/bleu": "max",
    "val/chrf": "max",
    "val/exact_match": "max",
    "val/loss": "min",
    "val/nll": "min",
    "val/perplexity": "min",
}


class TranslationModule(lightning.LightningModule):
    """Trains a `Transformer`. The vocabulary comes from the data, so the model is built in `setup`.

    Args:
        d_model: width of every token's vector.
        n_heads: attention heads; must divide d_model.
        d_ff: width inside the feed-forward layers.
        encoder_layers: blocks that read the source.
        decoder_layers: blocks that write the target.
        dropout: share of each sublayer's output that is zeroed while training.
        norm: LayerNorm before ("pre") or after ("post") each residual sum.
        max_length: pieces a sentence may have, bos or eos counted; longer pairs are left out.
        optimizer: "adamw" for everything, or "muon" for the matrices and AdamW for the rest.
        peak_learning_rate: AdamW's highest rate, reached after the warmup.
        muon_learning_rate: Muon's highest rate, reached at the same time.
        warmup_steps: updates until the peak.
        weight_decay: pull of the matrices towards zero, times the rate.
        label_smoothing: probability spread evenly over the vocabulary.

    Raises:
        ValueError: with all contradictions among the settings, before any data is read.
    """

    def __init__(
        self,
        d_model: int = 128,
        n_heads: int = 4,
        d_ff: int = 256,
        encoder_layers: int = 2,
        decoder_layers: int = 2,
        dropout: float = 0.1,
        norm: Literal["pre", "post"] = "pre",
        max_length: int = 256,
        optimizer: Literal["adamw", "muon"] = "adamw",
        peak_learning_rate: float = 2e-3,
        muon_learning_rate: float = 0.02,
        warmup_steps: int = 200,
        weight_decay: float = 0.01,
        label_smoothing: float = 0.1,
    ) -> None:
        super().__init__()
        self.shape: dict[str, Any] = {
            "d_model": d_model,
            "n_heads": n_heads,
            "d_ff": d_ff,
            "encoder_layers": encoder_layers,
            "decoder_layers": decoder_layers,
            "dropout": dropout,
            "norm": norm,
            "max_length": max_length,
        }
        self.max_length = max_length
        self.optimizer = optimizer
        self.peak_learning_rate = peak_learning_rate
        self.muon_learning_rate = muon_learning_rate
        self.warmup_steps = warmup_steps
        self.weight_decay = weight_decay
        self.label_smoothing = label_smoothing
        self._check_settings()
        self.tokenizer: Tokenizer
        self.model: Transformer
        self.tokens_in_update = 0  # real target tokens since the last update
        self._val_losses: list[Loss] = []
        self._tokens_since_log = 0
        self._clock = 0.0  # when that count began, in seconds; moved on by pauses
        self._pause = 0.0  # when validation began

    def _check_settings(self) -> None:
        faults = []
        try:
            TransformerConfig(vocab_size=5, pad_id=0, **self.shape)
        except ValueError as error:
            faults.append(str(error))
        for name in ("peak_learning_rate", "muon_learning_rate"):
            if getattr(self, name) <= 0:
                faults.append(f"{name} must be above 0, not {getattr(self, name)}")
        if self.warmup_steps < 0:
            faults.append(f"warmup_steps must be 0 or more, not {self.warmup_steps}")
        if self.weight_decay < 0:
            faults.append(f"weight_decay must be 0 or more, not {self.weight_decay}")
        if not 0 <= self.label_smoothing < 1:
            faults.append(f"label_smoothing must lie in [0, 1), not {self.label_smoothing}")
        if faults:
            raise ValueError("; ".join(faults))

    def setup(self, stage: str) -> None:
        if hasattr(self, "model"):
            return
        self.tokenizer = self.trainer.datamodule.tokenizer
        self.model = Transformer(
            TransformerConfig(
                vocab_size=len(self.tokenizer), pad_id=self.tokenizer.pad_id, **self.shape
            )
        )

    def adopt(self, model: Transformer, tokenizer: Tokenizer) -> None:
        """Take a trained model, whatever the settings say, instead of building one."""
        self.model, self.tokenizer = model, tokenizer

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW has β₂ = 0.98, which follows the fast-changing gradients of embeddings better
        than 0.999 (Vaswani et al. 2017, section 5.3). Decay pulls matrices only: a bias or a norm
        has no scale to regularise, and a rare piece's embedding would fade between its uses.
        """
        matrices, others = [], []
        for name, parameter in self.model.named_parameters():
            is_matrix = parameter.ndim == 2 and not name.startswith("embedding")
            (matrices if is_matrix else others).append(parameter)
        groups = [
            {
                "params": matrices,
                "weight_decay": self.weight_decay,
                "muon": self.optimizer == "muon",
            },
            {"params": others, "weight_decay": 0.0, "muon": False},
        ]
        # Under mixed precision a fused optimizer would undo the loss scale after the clipping.
        fused = "mixed" not in str(self.trainer.precision)
        # The rate is set before every update; this one is never used.
        kind = MuonAdamW if self.optimizer == "muon" else torch.optim.AdamW
        return kind(groups, lr=self.peak_learning_rate, betas=(0.9, 0.98), fused=fused)

    def loss(self, batch: Batch) -> Loss:
        """Only the N real target positions meet the output layer, the dearest one of all."""
        real = batch.tgt_out != self.model.config.pad_id  # (B, T)
        weight, targets = self.model.embedding.weight, batch.tgt_out[real]  # (V, D), (N,)
        hidden = self.model.decode(batch.tgt_in, *self.model.encode(batch.src))  # (B, T, D)
        return label_smoothed_cross_entropy(hidden[real], weight, targets, self.label_smoothing)

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Returns the *sum* over tokens; `on_before_optimizer_step` divides by their count.

        Only then does a token weigh the same wherever it stands, also when gradients of unequal
        batches are accumulated.
        """
        summed = self.loss(batch)
        self.tokens_in_update += summed.count
        count = max(1, summed.count)
        self.log("train/loss", summed.loss.detach() / count, prog_bar=True, batch_size=count)
        self.log("train/nll", summed.nll.detach() / count, batch_size=count)
        padding = (batch.src == self.model.config.pad_id).sum() + batch.tgt_out.numel() - count
        cells = batch.src.numel() + batch.tgt_out.numel()
        self.log("train/padding_share", padding / cells, batch_size=count)
        return summed.loss * self.trainer.accumulate_grad_batches  # Lightning divides by it

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Turn summed gradients into means, and set the rate of this update."""
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        torch._foreach_div_(gradients, float(max(1, self.tokens_in_update)))
        share = learning_rate(
            self.global_step,
            peak=1.0,
            warmup_steps=self.warmup_steps,
            total_steps=self.trainer.estimated_stepping_batches,
        )
        rate = share * self.peak_learning_rate
        for group in optimizer.param_groups:
            group["lr"] = share * self.muon_learning_rate if group.get("muon") else rate
        self.log("train/learning_rate", rate, prog_bar=True, batch_size=1)
        norm = torch.nn.utils.get_total_norm(gradients)
        self.log("train/gradient_norm", norm, batch_size=1)  # before clipping
        self._tokens_since_log += self.tokens_in_update
        self.tokens_in_update = 0
        if (self.global_step + 1) % max(1, self.trainer.log_every_n_steps) == 0:
            self._log_speed()
            if self.trainer.precision != "16-mixed":  # there the loss scale may overflow at times
                self._require_finite("gradient norm", float(norm))

    def on_train_start(self) -> None:
        """A corpus of three pairs has one batch an epoch and still shows its curve."""
        trainer = self.trainer
        updates = -(-trainer.num_training_batches // trainer.accumulate_grad_batches)
        trainer.log_every_n_steps = min(trainer.log_every_n_steps, updates)
        self._clock = time.perf_counter()

    def on_train_batch_end(self, outputs: object, batch: Batch, batch_idx: int) -> None:
        """A run that `max_steps` ends inside an epoch is validated too, and leaves checkpoints."""
        if self.global_step == self.trainer.max_steps:
            self.trainer.should_stop = True

    def on_train_epoch_start(self) -> None:
        # Lightning tells the epoch to a sampler, but not to a batch sampler.
        self.trainer.datamodule.train_sampler.set_epoch(self.current_epoch)

    def _log_speed(self) -> None:
        now = time.perf_counter()
        speed = self._tokens_since_log / max(now - self._clock, 1e-9)
        self.log("train/tokens_per_second", speed, prog_bar=True, batch_size=1)
        self._clock, self._tokens_since_log = now, 0

    def _require_finite(self, name: str, value: float) -> None:
        """Stop while the last good checkpoint is still there: weights of NaN never recover."""
        if not math.isfinite(value):
            raise UserError(
                f"training diverged: {name} {value} after {self.global_step} updates; lower "
                f"--model.peak_learning_rate (now {self.peak_learning_rate:g}) or raise "
                f"--model.warmup_steps (now {self.warmup_steps})"
            )

    def on_validation_start(self) -> None:
        self._pause = time.perf_counter()
        self._val_losses.clear()

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._val_losses.append(self.loss(batch))

    def on_validation_epoch_end(self) -> None:
        """Total over total, so that the batch size of validation does not matter."""
        count = max(1, sum(part.count for part in self._val_losses))
        nll = float(sum(part.nll for part in self._val_losses)) / count
        loss = float(sum(part.loss for part in self._val_losses)) / count
        if self.trainer.state.fn == "fit":
            self._require_finite("validation loss", loss)
        self.log("val/loss", loss, batch_size=count)
        self.log("val/nll", nll, batch_size=count)
        self.log("val/perplexity", math.exp(min(nll, 700.0)), batch_size=count)

    def on_validation_end(self) -> None:
        self._clock += time.perf_counter() - self._pause  # validation is no training time

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """A checkpoint is a whole model (weights, shape and tokenizer) that can be resumed."""
        make_resumable(checkpoint["loops"])
        checkpoint["translate"] = checkpoint_entry(self.model.config, self.tokenizer)
