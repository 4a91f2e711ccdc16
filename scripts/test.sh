#!/usr/bin/env bash
# Sets up .venv and runs the whole suite; further arguments go to pytest (-m "not slow", -k masks).
set -euo pipefail
. "$(dirname "$0")/setup.sh"

python -m pytest "$@"
