#!/usr/bin/env bash
# Trains configs/multi30k.yaml from start to end, by data diversification (Nguyen et al. 2020):
# two models of the 29,000 pairs, one each way, translate the training text, and a third learns
# from the pairs and from both translations. Needs the corpus in data/multi30k/. Arguments go to
# every training (--trainer.precision bf16-mixed); what is there already is not made again.
set -euo pipefail
. "$(dirname "$0")/setup.sh"

corpus=data/multi30k

# teacher NAME SOURCE TARGET [OPTION ...]: a model of that direction, and what it makes of the text
teacher() {
  local name="$1" source="$2" target="$3"
  shift 3
  if ! compgen -G "runs/$name/version_*/result.json" >/dev/null; then
    translate fit --config configs/multi30k-quick.yaml --name "$name" \
      --data.train.source "$corpus/train.$source.gz" \
      --data.train.target "$corpus/train.$target.gz" \
      --data.valid.source "$corpus/val.$source.gz" --data.valid.target "$corpus/val.$target.gz" "$@"
  fi
  if [ ! -e "$corpus/translated.$target" ]; then
    translate decode --model "runs/$name" --beam 5 \
      --input "$corpus/train.$source.gz" --output "$corpus/translated.$target"
  fi
}

teacher multi30k-forward en de "$@"
teacher multi30k-backward de en "$@"
translate fit --config configs/multi30k.yaml "$@"
