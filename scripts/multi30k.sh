#!/usr/bin/env bash
# Trains the models of configs/multi30k.yaml with seeds 1, 2 and 3, in three rounds
# (docs/experiments.md says how much each round improves BLEU):
#   1. Train two models, one for each direction, on the corpus. They translate the training text.
#   2. Train three models on the corpus and both translations. They translate the training text.
#   3. Continue the training of these three models for a short time, on all translations.
# The corpus must be in data/multi30k/. Arguments are passed on to every training, for example
# --trainer.precision bf16-mixed. Existing files are reused: after an interruption, run the command
# that the interrupted training printed, then start this script again.
set -euo pipefail
. "$(dirname "$0")/setup.sh"

corpus=data/multi30k
options=("$@")

# model NAME OPTION ...: train runs/multi30k-NAME unless it is finished
model() {
  if ! compgen -G "runs/multi30k-$1/version_*/result.json" >/dev/null; then
    translate fit --name "multi30k-$1" "${@:2}" ${options[@]+"${options[@]}"}
  fi
}

# translation NAME SOURCE TARGET: translate the training text with that model unless the file exists
translation() {
  if [ ! -e "$corpus/$1.$3" ]; then
    translate decode --model "runs/multi30k-$1" --beam 5 \
      --input "$corpus/train.$2.gz" --output "$corpus/$1.$3"
  fi
}

# pairs SOURCE TARGET: print one entry of data.train
pairs() { echo "{source: $corpus/$1, target: $corpus/$2}"; }

model forward --config configs/multi30k-quick.yaml
translation forward en de
model backward --config configs/multi30k-quick.yaml \
  --data.train "[$(pairs train.de.gz train.en.gz)]" \
  --data.valid.source "$corpus/val.de.gz" --data.valid.target "$corpus/val.en.gz"
translation backward de en

given="$(pairs train.en.gz train.de.gz)"
translated="$(pairs train.en.gz forward.de), $(pairs backward.en train.de.gz)"
for seed in 1 2 3; do
  model "teacher-$seed" --config configs/multi30k.yaml --seed_everything "$seed" \
    --data.train "[$given, $translated]" --trainer.max_epochs 10 --trainer.max_steps=-1
  translation "teacher-$seed" en de
done

for seed in 1 2 3; do
  # A copy outside the teacher's run folder, so that the training starts a new run.
  cp "$(ls -t runs/multi30k-teacher-$seed/version_*/checkpoints/last.ckpt | head -1)" \
    "runs/multi30k-teacher-$seed.ckpt"
  model "$seed" --config configs/multi30k.yaml --seed_everything "$seed" \
    --ckpt_path "runs/multi30k-teacher-$seed.ckpt"
done
