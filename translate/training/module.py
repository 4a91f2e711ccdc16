"""The LightningModule: one update, from a batch to new weights.

Lightning runs the parts of an update in this order:

    training_step             random generators seeded by the number of the batch;
                              sum of the loss over the real target tokens, and their number
    (Lightning: backward)     gradients of this sum, added to the gradients of earlier batches
    on_before_optimizer_step  gradients divided by the number of tokens; learning rate
    (Lightning: clipping)     trainer.gradient_clip_val
    (Lightning: step)         the optimizer changes the weights; gradients are set to zero
    on_train_batch_end        stop after trainer.max_steps updates

If `trainer.accumulate_grad_batches` is n, the first two parts run n times before the others.

Shapes: B batch, S source length, T target length, D d_model, V vocabulary; N real target tokens
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
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
from translate.training.optimizer import build_optimizer
from translate.training.resume import restart_epoch, rewind_loops, validation_follows
from translate.training.schedule import learning_rate
from translate.training.settings import out_of_range


class TranslationModule(lightning.LightningModule):
    """LightningModule that trains a `Transformer`.

    `build` makes the model, because the size of the vocabulary comes from the data.

    Args:
        optimizer: "adamw" for everything, or "muon" for the matrices and AdamW for the rest.
        peak_learning_rate: AdamW's highest learning rate, reached after the warmup.
        muon_learning_rate: Muon's highest learning rate, also reached after the warmup.
        warmup_steps: updates until the highest learning rate.
        weight_decay: weight decay of the matrices; an update multiplies it by the learning rate.
        label_smoothing: probability that is spread evenly over the vocabulary.
        **architecture: fields of `TransformerConfig`, except `vocab_size` and `pad_id`.

    Raises:
        ValueError: invalid settings, all in one message, before any data is read.
    """

    def __init__(
        self,
        optimizer: Literal["adamw", "muon"] = "adamw",
        peak_learning_rate: float = 2e-3,
        muon_learning_rate: float = 0.02,
        warmup_steps: int = 200,
        weight_decay: float = 0.01,
        label_smoothing: float = 0.1,
        **architecture: Any,
    ) -> None:
        super().__init__()
        self.save_hyperparameters(logger=False)  # as self.hparams; logged with the best score
        faults = out_of_range(self.hparams, {"warmup_steps": 0, "weight_decay": 0})
        for name in ("peak_learning_rate", "muon_learning_rate"):
            if self.hparams[name] <= 0:
                faults.append(f"{name} must be above 0, not {self.hparams[name]}")
        if not 0 <= label_smoothing < 1:
            faults.append(f"label_smoothing must lie in [0, 1), not {label_smoothing}")
        try:
            # jsonargparse reads the names, types and defaults of **architecture from this call.
            self.config = TransformerConfig(vocab_size=5, pad_id=0, **architecture)
        except ValueError as error:
            faults = [*str(error).split("; "), *faults]
        if faults:
            raise ValueError("; ".join(f"model.{fault}" for fault in faults))
        self.tokenizer: Tokenizer
        self.model: Transformer
        self.tokens_in_update = 0  # real target tokens since the last update
        self.complete_epochs = 0  # at the latest checkpoint
        self.run_record: dict[str, Any] = {}  # what a checkpoint says about its run
        self.restarts_epoch = False  # whether a resumed run starts its unfinished epoch again
        self._unfinished: dict[str, Any] = {}  # the group of batches in which a run was stopped

    def build(self, tokenizer: Tokenizer) -> None:
        """Build the untrained model. Callbacks that copy its weights need it before `setup`."""
        self.tokenizer = tokenizer
        self.config = replace(self.config, vocab_size=len(tokenizer), pad_id=tokenizer.pad_id)
        self.model = self.build_model(self.config)

    def build_model(self, config: TransformerConfig) -> Transformer:
        """Return an untrained model; a subclass may return another one."""
        return Transformer(config)

    def use(self, model: Transformer, tokenizer: Tokenizer) -> None:
        """Use a trained model instead of building one; the model settings are ignored."""
        self.model, self.tokenizer, self.config = model, tokenizer, model.config

    def configure_optimizers(self) -> torch.optim.Optimizer:
        kind, decay = self.hparams.optimizer, self.hparams.weight_decay
        # In mixed precision, a fused optimizer would remove the loss scale only after clipping.
        fused = "mixed" not in str(self.trainer.precision)
        return build_optimizer(self.model, kind, weight_decay=decay, fused=fused)

    # One update

    def on_train_start(self) -> None:
        """Continue a group of batches in which the run was stopped; log at least once per epoch."""
        if self._unfinished:
            self.tokens_in_update = self._unfinished["tokens"]
            for name, gradient in self._unfinished["gradients"].items():
                self.get_parameter(name).grad = gradient.to(self.device)
            self._unfinished = {}
        trainer = self.trainer
        updates = -(-trainer.num_training_batches // trainer.accumulate_grad_batches)
        trainer.log_every_n_steps = min(trainer.log_every_n_steps, updates)

    def on_train_epoch_start(self) -> None:
        # Lightning calls `set_epoch` of a sampler, but not of a batch sampler.
        self.trainer.datamodule.train_sampler.set_epoch(self.current_epoch)

    def loss(self, batch: Batch) -> Loss:
        """Return the loss of a batch.

        Logits are the most expensive operation: only the N real target tokens get them.
        """
        real = batch.tgt_out != self.config.pad_id  # (B, T)
        memory, src_mask = self.model.encode(batch.src)  # (B, S, D)
        hidden = self.model.decode(batch.tgt_in, memory, src_mask)  # (B, T, D)
        return label_smoothed_cross_entropy(
            hidden[real],  # (N, D)
            self.model.embedding.weight,  # (V, D)
            batch.tgt_out[real],  # (N,)
            self.hparams.label_smoothing,
        )

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the *sum* over tokens; `on_before_optimizer_step` divides by their number.

        So every token has the same weight, even if the gradients of batches with different
        numbers of tokens are accumulated.
        """
        accumulated = self.trainer.accumulate_grad_batches
        seed_micro_batch(
            self.trainer.datamodule.seed,
            update=self.global_step,
            micro_batch=batch_idx % accumulated,
            rank=self.global_rank,
        )
        loss, nll, count = self.loss(batch)
        self.tokens_in_update += count
        self.log("train/loss", loss.detach() / count, batch_size=count)
        self.log("train/nll", nll.detach() / count, batch_size=count)
        real = (batch.src != self.config.pad_id).sum() + count
        positions = batch.src.numel() + batch.tgt_out.numel()
        self.log("train/padding_share", 1 - real / positions, batch_size=count)
        return loss * accumulated  # Lightning divides by this

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        for gradient in gradients:
            gradient.div_(self.tokens_in_update)
        self.tokens_in_update = 0
        step, settings = self.global_step, self.hparams
        warmup, total = settings.warmup_steps, self.trainer.estimated_stepping_batches
        for group in optimizer.param_groups:
            peak = settings.muon_learning_rate if group["muon"] else settings.peak_learning_rate
            group["lr"] = learning_rate(step, peak=peak, warmup_steps=warmup, total_steps=total)
        self.log("train/learning_rate", group["lr"], batch_size=1)  # of AdamW
        norm = torch.nn.utils.get_total_norm(gradients)
        self.log("train/gradient_norm", norm, batch_size=1)  # before clipping
        looked_at = (step + 1) % max(1, self.trainer.log_every_n_steps) == 0
        # With 16-mixed the loss scale may overflow; the scaler then skips the update.
        if looked_at and self.trainer.precision != "16-mixed":
            self._require_finite("gradient norm", float(norm))

    def on_train_batch_end(self, outputs: object, batch: Batch, batch_idx: int) -> None:
        # With `should_stop`, Lightning also validates and saves a run that ends inside an epoch.
        trainer = self.trainer
        if self.global_step == trainer.max_steps:
            trainer.should_stop = True
        trained_enough = trainer.current_epoch >= (
            trainer.min_epochs or 0
        ) and self.global_step >= (trainer.min_steps or 0)
        if trainer.should_stop and trained_enough:
            trainer.check_val_every_n_epoch = 1  # the last epoch is validated, whichever it is

    def _require_finite(self, name: str, value: float) -> None:
        """Stop before NaN weights, which never recover, replace a good checkpoint."""
        if not math.isfinite(value):
            raise UserError(
                f"training diverged: {name} {value} after {self.global_step} updates; lower "
                f"--model.peak_learning_rate (now {self.hparams.peak_learning_rate:g}) or raise "
                f"--model.warmup_steps (now {self.hparams.warmup_steps})"
            )

    # Validation

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Log the mean losses of a batch; Lightning averages them, weighted by `batch_size`."""
        loss, nll, count = self.loss(batch)
        self.log("val/loss", loss / count, batch_size=count)
        self.log("val/nll", nll / count, batch_size=count)

    def on_validation_epoch_end(self) -> None:
        metrics = self.trainer.callback_metrics
        if self.trainer.state.fn == "fit":
            self._require_finite("validation loss", float(metrics["val/loss"]))
        self.log("val/perplexity", metrics["val/nll"].exp(), batch_size=1)

    # Checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the settings and the tokenizer for decoding, and the progress for resuming."""
        validated = not self.tokens_in_update and validation_follows(self.trainer)
        updates = self.global_step - validated
        progress = rewind_loops(checkpoint["loops"], logged_updates=updates)
        self.complete_epochs = progress["epochs"]
        checkpoint["training"] = {**self.run_record, **progress}
        if self.tokens_in_update:  # a validation between the batches of one update
            gradients = {
                name: parameter.grad
                for name, parameter in self.named_parameters()
                if parameter.grad is not None
            }
            unfinished = {"tokens": self.tokens_in_update, "gradients": gradients}
            checkpoint["training"]["unfinished"] = unfinished
        weights = checkpoint["state_dict"]  # final: Lightning calls this hook after all others
        data = self.trainer.datamodule
        split = {"seed": data.seed, "held_out": data.held_out, "train_sha256": data.sha256["train"]}
        entry = checkpoint_entry(self.config, self.tokenizer, weights)
        checkpoint["translate"] = entry | split

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if self.restarts_epoch:
            restart_epoch(checkpoint)
        self.complete_epochs = checkpoint["training"]["epochs"]
        self.trainer.datamodule.batches_done = checkpoint["training"]["batches"]
        self._unfinished = checkpoint["training"].get("unfinished", {})


def seed_micro_batch(seed: int, *, update: int, micro_batch: int, rank: int) -> None:
    """Seed the random generators of torch, which draw the masks of dropout.

    The masks of a batch then depend on its number alone and not on what was drawn before. So a
    resumed run draws the masks of an uninterrupted one, and no generator has to be saved.

    Args:
        seed: the seed of the run.
        update: updates made before this batch.
        micro_batch: number of the batch within its update (gradient accumulation).
        rank: number of the process.
    """
    digest = hashlib.sha256(f"{seed} {update} {micro_batch} {rank}".encode()).digest()
    torch.manual_seed(int.from_bytes(digest[:8], "little"))
