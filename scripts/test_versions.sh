#!/usr/bin/env bash
# Runs the fast tests with the lowest and with the newest versions that pyproject.toml allows, for
# each Python from 3.10 to 3.14 that is installed, and prints one line for each combination:
#   bash scripts/test_versions.sh                       all combinations
#   bash scripts/test_versions.sh lowest python3.10     one of them
# Each combination is installed into a new environment in a temporary folder (set TMPDIR to choose
# the disk: PyTorch takes up to 8 GB), which is deleted afterwards. Logs stay in that folder.
set -euo pipefail
cd "$(dirname "$0")/.."

versions=() pythons=()
for argument in "$@"; do
  case "$argument" in
    lowest | newest) versions+=("$argument") ;;
    *) pythons+=("$argument") ;;
  esac
done
[ ${#versions[@]} -gt 0 ] || versions=(lowest newest)
[ ${#pythons[@]} -gt 0 ] || pythons=(python3.10 python3.11 python3.12 python3.13 python3.14)

folder="$(mktemp -d)"
trap 'rm -rf "$folder/venv"' EXIT
echo "test_versions: logs are in $folder" >&2

# pip cannot choose the lowest versions, so every lower bound becomes a pin: "numpy>=2.2" becomes
# numpy==2.2. Packages that pyproject.toml does not name (those of the dependencies) are the newest.
sed 1,/^dependencies/d pyproject.toml | grep -oE '"[A-Za-z0-9_-]+(\[[a-z]+\])?>=[^"]+"' |
  sed -E 's/"([A-Za-z0-9_-]+)(\[[a-z]+\])?>=([0-9.]+)[^;"]*(;[^"]*)?"/\1==\3\4/' > "$folder/lowest"
touch "$folder/newest"

try() { # VERSIONS PYTHON: install and test
  rm -rf "$folder/venv"
  "$2" -m venv "$folder/venv"
  local python="$folder/venv/bin/python"
  # Only wheels: most people cannot compile an old package.
  "$python" -m pip install --only-binary :all: -c "$folder/$1" -e ".[dev,datasets]" &&
    "$python" -m pip freeze &&
    "$python" -m pytest -m "not slow" -p no:cacheprovider tests
}

failed=0
for python in "${pythons[@]}"; do
  for version in "${versions[@]}"; do
    log="$folder/$python.$version.log"
    if ! "$python" -c 'import sys, venv' > "$log" 2>&1; then
      result="not installed"
    elif try "$version" "$python" > "$log" 2>&1; then
      result="passed: $(tail -n 1 "$log")"
    else
      failed=1 result="FAILED: $(tail -n 1 "$log")"
    fi
    printf '%-11s  %-6s  %s\n' "$python" "$version" "$result"
  done
done
exit $failed
