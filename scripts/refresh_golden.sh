#!/usr/bin/env bash
# Rewrites the outputs shown in README.md, examples/ and tests/cli/golden from the program of a build. Read the diff.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
cmake --build "$build" --target foreshard cli_tests
FORESHARD_REFRESH=1 "$build/tests/cli_tests" --gtest_filter='Files/Session.*' --gtest_brief=1
git --no-pager diff --stat -- README.md examples tests/cli/golden
