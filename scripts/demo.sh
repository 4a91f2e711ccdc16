#!/usr/bin/env bash
# Sets up .venv, trains configs/tiny.yaml (unless a finished run exists), translates two sentences.
set -euo pipefail
. "$(dirname "$0")/setup.sh"

if ! compgen -G "runs/tiny/version_*/result.json" >/dev/null; then
  echo "demo: training configs/tiny.yaml" >&2
  translate fit --config configs/tiny.yaml
fi

echo
echo '$ translate decode "This is an example" --prefix "Das ist ein" --steps'
translate decode --model runs/tiny "This is an example" --prefix "Das ist ein" --steps
echo
echo '$ translate decode "The dog chased the ball because it rolled away."'
translate decode --model runs/tiny "The dog chased the ball because it rolled away."
echo
cat <<TEXT
To continue, activate the environment: . .venv/bin/activate
  translate trace                                            attention, step by step
  translate attend "This is an example" -o attention.html    which words attend to which
  tensorboard --logdir "$PWD/runs"
TEXT
