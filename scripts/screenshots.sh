#!/usr/bin/env bash
# Makes the pictures of docs/gui.md, and with --all FOLDER every view in dark and light, English and Chinese, 1x and 2x.
# Needs a built foreshard-gui (BUILD=build/release) and, for Chinese, a font that has it (fonts-noto-cjk). No display.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
program=$build/foreshard-gui
[ -x "$program" ] || { echo "foreshard: $program is not there; build it with ./quickstart.sh --gui" >&2; exit 1; }
export QT_QPA_PLATFORM=offscreen XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$(mktemp -d)}

# shot FILE VIEW THEME LANGUAGE SCALE
shot() {
  "$program" --screenshot "$1" --view "$2" --theme "$3" --lang "$4" --scale "$5" --size "${SIZE:-1600x1000}" 2>/dev/null
  echo "$1"
}

if [ "${1:-}" = --all ]; then
  folder=${2:?a folder}
  mkdir -p "$folder"
  for view in window timeline memory topology search compare inspector; do
    for theme in dark light; do
      for language in en zh_CN; do
        for scale in 1 2; do shot "$folder/$view-$theme-$language-${scale}x.png" $view $theme $language $scale; done
      done
    done
  done
else
  mkdir -p docs/gui
  for view in window timeline memory topology search compare inspector; do shot docs/gui/$view.png $view dark en 1; done
  shot docs/gui/window-light-zh.png window light zh_CN 1
  if command -v pngquant >/dev/null; then pngquant --force --ext .png --skip-if-larger 128 docs/gui/*.png || true; fi
fi
