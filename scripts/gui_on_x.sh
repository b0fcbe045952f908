#!/usr/bin/env bash
# Runs the tests of the window under an X server with a window manager, as a person would have it: windows become active by the
# window manager, keys come by scan code. Arguments go to the tests: --gtest_filter=Interaction.* . Exit code 77: something is
# missing (packages xvfb, openbox), which is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
tests=${GUI_TESTS:-$build/tests/gui_tests}
[ -x "$tests" ] || { echo "foreshard: $tests is not there; build the target gui_tests" >&2; exit 1; }
for program in Xvfb openbox; do
  command -v $program >/dev/null || { echo "skipped: $program is not installed (packages xvfb and openbox)"; exit 77; }
done

work=$(mktemp -d)
trap 'kill ${openbox:-} ${server:-} 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
# The server takes the first number that is free and says which.
Xvfb -displayfd 3 -screen 0 1920x1200x24 -nolisten tcp 3>"$work/display" 2>"$work/server.log" &
server=$!
for _ in $(seq 100); do
  [ -s "$work/display" ] && break
  kill -0 $server 2>/dev/null || { cat "$work/server.log" >&2; exit 1; }
  sleep 0.1
done
[ -s "$work/display" ] || { echo "foreshard: Xvfb did not start" >&2; exit 1; }
export DISPLAY=:$(cat "$work/display") XDG_RUNTIME_DIR=$work QT_QPA_PLATFORM=xcb
chmod 700 "$work"
openbox >"$work/openbox.log" 2>&1 &
openbox=$!
sleep 0.5
kill -0 $openbox || { cat "$work/openbox.log" >&2; exit 1; }
# At every change those of focus and keys; with FORESHARD_LONG all but those that test what is shown and not how a person gets there,
# which are the same with any platform.
filter='Interaction.*:PaletteBox.*:KeyMap.*:Places.*'
[ -z "${FORESHARD_LONG:-}" ] || filter='-RandomDay.*:FreshnessTest.*:Measured.*'
"$tests" --gtest_filter="$filter" "$@"
