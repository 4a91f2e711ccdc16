#!/usr/bin/env bash
# From nothing to "Beispiel": sets up .venv, trains configs/tiny.yaml (once), shows a translation.
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
echo "Watch the training: .venv/bin/tensorboard --logdir \"$PWD/runs\""
echo "Look inside: .venv/bin/translate trace"
echo "             .venv/bin/translate attend \"This is an example\" -o attention.html"
