#!/usr/bin/env bash
# The checks that take too long for every change: minutes to hours, the same answers for the same seed.
#   scripts/long_checks.sh [fuzz|plans|sanitized|faults|tests|all] [--count N] [--seed N]
# fuzz       files with something changed, through the programs (tests/fuzz/changed_files.py): 20,000
# plans      strategies drawn at random, trained on the host against one device (5,000), and simulated (10,000)
# sanitized  a part of the fuzz and the tests of strategies, executor and command line under address and undefined-behaviour sanitizers
# faults     trainings that are killed again and again (scripts/soak.sh, 100 times), and calls that fail one after another
# tests      the tests of which test.sh makes a part, whole (tests/how_many.h)
# --count is the number of files, of strategies (trained; twice as many are simulated) or of kills, instead of those above.
set -euo pipefail
cd "$(dirname "$0")/.."

what=all count='' seed=1
while [ $# -gt 0 ]; do
  case $1 in
    fuzz | plans | sanitized | faults | tests | all) what=$1 ;;
    --count) count=$2 && shift ;;
    --seed) seed=$2 && shift ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 1 ;;
  esac
  shift
done
jobs=$(nproc)
found=build/long-checks  # what broke
mkdir -p "$found"

build() {  # PRESET TARGET...
  local preset=$1
  shift
  [ -f "build/$preset/CMakeCache.txt" ] || cmake --preset "$preset" >"$found/configure-$preset.log"
  cmake --build "build/$preset" -j "$jobs" --target "$@"
}

# drawn PRESET PROGRAM FILTER: the tests of the filter, of which there has to be one.
drawn() {
  local program=build/$1/tests/$2
  [ -n "$("$program" --gtest_list_tests --gtest_filter="$3")" ] || { echo "long checks: $2 has no test $3" >&2 && return 1; }
  "$program" --gtest_brief=1 --gtest_filter="$3"
}

changed_files() {  # PRESET COUNT OPTIONS...
  local preset=$1 files=$2 gui=()
  shift 2
  [ ! -x "build/$preset/foreshard-gui" ] || gui=(--gui "build/$preset/foreshard-gui")
  python3 tests/fuzz/changed_files.py "build/$preset/foreshard" --count "$files" --seed "$seed" --jobs "$jobs" --out "$found/files-$preset" \
    "${gui[@]}" "$@"
}

fuzz() {
  build release foreshard
  if grep -q '^foreshard-gui:' <(cmake --build build/release --target help); then build release foreshard-gui; fi
  changed_files release "${count:-20000}"
}

plans() {
  build release exec_tests cli_tests foreshard
  export FORESHARD_PLANS_TRAINED=${count:-5000} FORESHARD_PLANS_SIMULATED=$((2 * ${count:-5000})) FORESHARD_SEED=$seed
  drawn release exec_tests 'DrawnPlans*'
  drawn release cli_tests 'DrawnJobs*'
}

sanitized() {
  build asan foreshard strategy_tests exec_tests cli_tests
  changed_files asan "$((${count:-20000} / 20))" --memory 0 --cpu 120
  local tests
  for tests in strategy_tests exec_tests cli_tests; do drawn asan "$tests" '*'; done
}

faults() {
  build release foreshard cli_tests
  scripts/soak.sh build/release/foreshard "${count:-100}" "$seed"
  FORESHARD_REFUSALS=40 drawn release cli_tests '*RefusedMemory*:*RefusedThreads*'
}

tests() {
  build release all
  FORESHARD_LONG=1 ctest --test-dir build/release --output-on-failure --parallel "$((jobs + 1))" --timeout 3600
}

if [ "$what" != all ]; then
  "$what"
  exit
fi
status=0
for part in fuzz plans sanitized faults tests; do
  echo "== $part"
  "$0" "$part" ${count:+--count "$count"} --seed "$seed" || { status=1 && echo "== $part: FAILED"; }
done
exit $status
