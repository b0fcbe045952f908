#!/usr/bin/env bash
# Rewrites the tables of docs/validation.md, its picture, docs/scoreboard.md and accuracy/residuals.json from data/measured. Read the diff.
#
#     scripts/refresh_validation.sh [build/release] [--learn | --cross]
#
# --learn also predicts every run by what others of its source teach: two minutes.
# --cross also fits the constants without each source and predicts it (scripts/cross_validate.py): some fifty runs, minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/release}/foreshard

replace() { # replaces what stands between <!-- $1 --> and <!-- end of $1 --> in the page $3 by the file $2
  awk -v name="$1" -v with="$2" '$0 == "<!-- " name " -->" { print; while ((getline line < with) > 0) print line; skip = 1 }
     $0 == "<!-- end of " name " -->" { skip = 0 }
     !skip && $0 != "<!-- " name " -->" { print }' "docs/$3.md" >build/page.new
  mv build/page.new "docs/$3.md"
}

"$program" validate data/measured/*.csv --residuals accuracy/residuals.json >/dev/null
"$program" validate data/measured/*.csv --svg docs/validation.svg --markdown >build/validation.md  # which verdicts are close: by these residuals
replace tables build/validation.md validation
"$program" validate data/measured/mlperf.csv --markdown --per-row >build/scoreboard.md  # with the intervals that were just written
replace scoreboard build/scoreboard.md scoreboard
if [ "${2:-}" = --learn ]; then
  "$program" validate data/measured/*.csv --learn --markdown >build/learning.md
  replace learning build/learning.md validation
fi
if [ "${2:-}" = --cross ]; then
  scripts/cross_validate.py "$program" --notes accuracy/sources.json >build/cross.md
  replace cross-validation build/cross.md validation
  "$program" validate data/measured/*.csv --residuals accuracy/residuals.json >/dev/null
fi
git --no-pager diff --stat -- docs/validation.md docs/validation.svg docs/scoreboard.md accuracy
