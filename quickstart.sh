#!/usr/bin/env bash
# Installs what is missing (Debian 12 or 13), builds foreshard and shows how GPT-3 175B trains on 1024 A100s. Asks nothing.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/setup.sh

gui=""
for option in "$@"; do
  case $option in
    --gui) gui=yes ;;
    --help | -h)
      echo "usage: ./quickstart.sh [--gui]"
      exit 0
      ;;
    *)
      echo "foreshard: quickstart.sh: found option '$option', expected --gui or nothing" >&2
      exit 1
      ;;
  esac
done

# shellcheck disable=SC2086  # the lists are meant to be split
if [ -n "$gui" ]; then
  install_packages $foreshard_packages $foreshard_gui_packages
  configure_and_build foreshard -DFORESHARD_GUI=ON
  cmake --build build/release --parallel 2 --target foreshard-gui
else
  install_packages $foreshard_packages
  configure_and_build foreshard
fi

program=build/release/foreshard
echo
"$program" simulate --model gpt3-175b --cluster dgx-a100-x128 --tp 8 --pp 16 --dp 8 --global-batch 1536
cat <<END

The program: $PWD/$program
Try:
  $program simulate --model llama-3-70b --cluster dgx-h100-x16 --tp 8 --pp 4 --global-batch 512 --trace trace.json
  $program show schedule interleaved-1f1b --pp 4 --micro-batches 8 --virtual-stages 2
  $program list options
END
if [ -n "$gui" ]; then
  echo "The window: $PWD/build/release/foreshard-gui"
fi
