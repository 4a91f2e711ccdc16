#!/usr/bin/env bash
# Builds the wheel, installs it into a new environment and tries it there, without the repository.
# PACKAGES=FOLDER takes the dependencies from FOLDER (the site-packages of an environment) instead
# of installing them.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "try_wheel: $1" >&2; exit 1; }

repository="$PWD"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
pip() { "$folder/venv/bin/python" -m pip --disable-pip-version-check -q "$@"; }
cp -r pyproject.toml README.md LICENSE translate "$folder" # because a build leaves files behind
pip wheel --no-deps --wheel-dir "$folder" "$folder"
if [ -n "${PACKAGES:-}" ]; then
  pip install --no-deps "$folder"/*.whl
  # After the wheel in the search path, so that an editable install in FOLDER is not used.
  echo "$PACKAGES" > "$(echo "$folder"/venv/lib/python*/site-packages)/packages.pth"
else
  pip install "$(grep '^torch==' constraints.txt)" -c constraints.txt
  pip install "$folder"/*.whl -c constraints.txt
fi

cd "$folder"
rm -r translate
PATH="$folder/venv/bin:$PATH"
translate --help > help.txt
translate --version
expected="$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$repository"/translate/*.py)"
[ "$(translate --version)" = "translate $expected" ] || fail "--version does not print $expected"
if translate fit 2> message.txt; then fail "fit without a config must be refused"; fi
cat message.txt
grep -q "translate template my.yaml" message.txt || fail "fit must name the command for a config"
translate template my.yaml
cmp my.yaml "$repository/configs/own.yaml" || fail "the packaged template is not configs/own.yaml"
translate trace > trace.txt
grep -q "First stage that disagrees: none" trace.txt || fail "translate trace: stages disagree"
echo "try_wheel: passed"
