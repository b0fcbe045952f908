#!/usr/bin/env bash
# Fetches the headers of cudnn-frontend (MIT) from the package index, at a pinned version and hash, and unpacks them into build/cudnn/include, where CMake
# looks for them. cudnn.h itself comes with the toolkit, or with the wheel nvidia-cudnn-cu13: -DFORESHARD_CUDNN=its include folder.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/cudnn
mkdir -p "$folder"
echo "nvidia-cudnn-frontend==1.32.0 --hash=sha256:c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0" >"$folder/wheel.txt"
# Of one Python, whichever runs here: the headers are the same in all.
python3 -m pip download --quiet --retries 1 --timeout 15 --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 3.11 \
  --abi cp311 --platform manylinux_2_28_x86_64 --dest "$folder" --requirement "$folder/wheel.txt"
python3 - "$folder" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
wheel, = folder.glob("nvidia_cudnn_frontend-1.32.0-*.whl")
with zipfile.ZipFile(wheel) as all_of:
    all_of.extractall(folder, [name for name in all_of.namelist() if name.startswith("include/")])
    all_of.extractall(folder, [name for name in all_of.namelist() if "LICENSE" in name and ".dist-info" in name])
wheel.unlink()
PYTHON
echo "headers of cudnn-frontend 1.32.0 are in $folder/include"
