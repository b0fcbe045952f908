#!/usr/bin/env bash
# Layout (clang-format) and clang-tidy, when they are there, over the given files or all of ours. Needs a configured build/dev
# for clang-tidy. Exit 1 on any finding.
set -uo pipefail
cd "$(dirname "$0")/.."
files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp')
fi
status=0
if command -v clang-format >/dev/null; then
  clang-format --dry-run -Werror "${files[@]}" || status=1
else
  echo "clang-format is not here: layout not checked"
fi
if ! command -v clang-tidy >/dev/null; then
  echo "clang-tidy is not here: not run"
elif [ ! -f build/dev/compile_commands.json ]; then
  echo "no build/dev (cmake --preset dev): clang-tidy not run"
else
  sources=()
  for file in "${files[@]}"; do
    [[ $file == *.cpp && $file != tests/* && $file != bench/* ]] && sources+=("$file")
  done
  if [ ${#sources[@]} -gt 0 ]; then
    printf '%s\0' "${sources[@]}" | xargs -0 -P 2 -n 2 clang-tidy -p build/dev --quiet --extra-arg=-Wno-unused-command-line-argument || status=1
  fi
fi
exit $status
