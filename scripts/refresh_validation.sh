#!/usr/bin/env bash
# Rewrites the tables of docs/validation.md and accuracy/residuals.json from data/measured. Read the diff.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release}/foreshard
"$program" validate data/measured/*.csv --residuals accuracy/residuals.json --markdown >build/validation.md
awk '/^<!-- tables -->/ { print; while ((getline line < "build/validation.md") > 0) print line; skip = 1 }
     /^<!-- end of tables -->/ { skip = 0 }
     !skip && !/^<!-- tables -->/ { print }' docs/validation.md >build/validation.new
mv build/validation.new docs/validation.md
git --no-pager diff --stat -- docs/validation.md accuracy
