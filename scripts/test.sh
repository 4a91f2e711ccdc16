#!/usr/bin/env bash
# Sets up .venv and runs all tests. Arguments go to pytest, for example -m "not slow" or -k masks.
set -euo pipefail
. "$(dirname "$0")/setup.sh"

# Two processes. All tests of a file run in the same process, so that they share fixtures.
python -m pytest -n 2 --dist loadfile "$@"
