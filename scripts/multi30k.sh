#!/usr/bin/env bash
# Trains configs/multi30k.yaml from start to end, with seeds 1, 2 and 3, in three rounds (what each
# is good for: docs/quality.md). Two models of the pairs, one each way, translate the training
# text; three learn from the pairs and both translations, and translate it again; the same three
# then go on for a little with what all of them wrote. Needs the corpus in data/multi30k/. Arguments
# go to every training (--trainer.precision bf16-mixed). What is there already is not made again:
# after an interruption, give the command that it printed, and start this script once more.
set -euo pipefail
. "$(dirname "$0")/setup.sh"

corpus=data/multi30k
options=("$@")

# model NAME OPTION ...: trains it, unless it has been
model() {
  if ! compgen -G "runs/multi30k-$1/version_*/result.json" >/dev/null; then
    translate fit --name "multi30k-$1" "${@:2}" ${options[@]+"${options[@]}"}
  fi
}

# translation NAME SOURCE TARGET: what that model makes of the training text
translation() {
  if [ ! -e "$corpus/$1.$3" ]; then
    translate decode --model "runs/multi30k-$1" --beam 5 \
      --input "$corpus/train.$2.gz" --output "$corpus/$1.$3"
  fi
}

# pairs SOURCE TARGET: one entry of data.train
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
  # A checkpoint outside of a run's folder begins a run of its own.
  cp "$(ls -t runs/multi30k-teacher-$seed/version_*/checkpoints/last.ckpt | head -1)" \
    "runs/multi30k-teacher-$seed.ckpt"
  model "$seed" --config configs/multi30k.yaml --seed_everything "$seed" \
    --ckpt_path "runs/multi30k-teacher-$seed.ckpt"
done
