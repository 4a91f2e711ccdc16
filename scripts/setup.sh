# Sourced by the other scripts: makes .venv with exactly the pinned packages and activates it.
# Does nothing when that was done before and neither list of packages has changed.

setup_environment() {
  local python="${PYTHON:-python3}" wanted
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "setup: Python 3.10 or newer is needed; name one: PYTHON=python3.11 bash scripts/..." >&2
    return 1
  fi
  if [ ! -x .venv/bin/python ]; then
    "$python" -m venv .venv || {
      echo "setup: could not make .venv (on Debian and Ubuntu: apt install python3-venv)" >&2
      return 1
    }
  fi
  wanted="$(cat constraints.txt pyproject.toml | cksum)"
  if [ "$(cat .venv/installed 2>/dev/null)" != "$wanted" ]; then
    echo "setup: installing the pinned packages into .venv" >&2
    # torch first and exactly, so that no other package asks for the newest release.
    .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0 &&
      .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]" ||
      return 1
    echo "$wanted" > .venv/installed
  fi
  . .venv/bin/activate
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." && setup_environment
