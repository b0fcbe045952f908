#!/usr/bin/env bash
# Installs what is missing (Debian 12), builds foreshard and shows how GPT-3 175B trains on 1024 A100s. Asks nothing.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/setup.sh

for option in "$@"; do
  case $option in
    --gui) echo "foreshard: this version has no GUI yet; going on with the command line program." ;;
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

# shellcheck disable=SC2086  # the list is meant to be split
install_packages $foreshard_packages
configure_and_build foreshard

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
