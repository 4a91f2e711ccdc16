# Other scripts source this file. It creates .venv with exactly the pinned packages and activates
# .venv. If constraints.txt and pyproject.toml have not changed, it only activates .venv.

setup_environment() {
  local python="${PYTHON:-python3}" bin=.venv/bin wanted
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "setup: needs Python 3.10 or newer; name one with PYTHON=python3.11 bash scripts/..." >&2
    return 1
  fi
  if [ ! -d .venv ]; then
    "$python" -m venv .venv || {
      rm -rf .venv
      echo "setup: cannot create .venv (on Debian and Ubuntu: apt install python3-venv)" >&2
      return 1
    }
  fi
  if [ -d .venv/Scripts ]; then bin=.venv/Scripts; fi # Windows
  wanted="$(cat constraints.txt pyproject.toml | cksum)"
  if [ "$(cat .venv/installed 2>/dev/null)" != "$wanted" ]; then
    echo "setup: installing the pinned packages into .venv" >&2
    # torch comes first, in its pinned version; otherwise another package may install the newest.
    "$bin/python" -m pip install -q --disable-pip-version-check \
      "$(grep '^torch==' constraints.txt)" -c constraints.txt &&
      "$bin/python" -m pip install -q --disable-pip-version-check -e ".[dev]" -c constraints.txt ||
      return 1
    echo "$wanted" > .venv/installed
  fi
  . "$bin/activate"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.." && setup_environment
