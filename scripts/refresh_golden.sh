#!/usr/bin/env bash
# Rewrites the outputs shown in README.md, examples/ and tests/cli/golden from the program of a build. Read the diff. Measured
# blocks of a file are taken anew together, when one of them has another form.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
cmake --build "$build" --target foreshard cli_tests
FORESHARD_REFRESH=1 "$build/tests/cli_tests" --gtest_filter='Files/Session.*' --gtest_brief=1
# The pictures of the README and of docs/fine-grained.md, by their own commands.
mkdir -p build/picture
(cd build/picture && "../../$build/foreshard" simulate --model gpt3-175b --cluster dgx-a100-x128 --tp 8 --pp 16 --dp 8 \
  --global-batch 192 --svg ../../docs/timeline.svg >/dev/null)
"$build/foreshard" simulate --model bert-large --cluster dgx-a100 --tp 8 --dp 1 --micro-batch 8 --set model.num_hidden_layers=2 \
  --parts 2 --granularity op --svg docs/fine-grained.svg >/dev/null
git --no-pager diff --stat -- README.md examples tests/cli/golden
