#!/usr/bin/env bash
# Rewrites the outputs shown in README.md, examples/ and tests/cli/golden from the program of a build. Read the diff. Measured
# blocks of a file are taken anew together, when one of them has another form.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
cmake --build "$build" --target foreshard cli_tests
FORESHARD_REFRESH=1 "$build/tests/cli_tests" --gtest_filter='Files/Session.*' --gtest_brief=1
# The picture of the README, by its own command.
mkdir -p build/picture
(cd build/picture && "../../$build/foreshard" simulate --model gpt3-175b --cluster dgx-a100-x128 --tp 8 --pp 16 --dp 8 \
  --global-batch 192 --svg ../../docs/timeline.svg >/dev/null)
git --no-pager diff --stat -- README.md examples tests/cli/golden
