#!/usr/bin/env bash
# Tries an archive of pack.sh, made with MODULE=the fake CUDA module, in a root that has a distribution's base and python3 and nothing else, without a network.
# Needs root and debootstrap; the root is made once.
#
#   ninja -C build/release cuda_twin nccl_twin
#   MODULE=build/release/tests/twin/libforeshard_cuda.so bench/gpu/pack.sh build/try.tar.xz
#   bench/gpu/try_bare.sh build/try.tar.xz [ROOT] [OUT]
#   NCCL=libnccl.so.2 ...               instead of build/release/tests/libnccl_twin.so, a fake one; none where that is not there either
set -euo pipefail
archive=$(realpath "${1:?usage: try_bare.sh ARCHIVE [ROOT] [OUT]}")
root=$(realpath -m "${2:-/tmp/foreshard-bare}")
out=$(realpath -m "${3:-build/try-bare}")
[ -x "$root/usr/bin/python3" ] || debootstrap --variant=minbase --include=python3,xz-utils bookworm "$root"
rm -rf "$root/work"
mkdir -p "$root/work" "$out"
tar -C "$root/work" -xf "$archive"
nccl=${NCCL:-build/release/tests/libnccl_twin.so}
[ ! -e "$nccl" ] || cp "$nccl" "$root/work/libnccl.so.2"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
trap 'umount "$root/proc"' EXIT
# No network but a loopback that is down; no variables of ours but what the fake takes.
unshare -n chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root SIZE=tiny TWIN_GPUS=1 TWIN_MEMORY=640 TWIN_NCCL_VERSION=23007 \
  FORESHARD_NCCL=/work/libnccl.so.2 ${PARTS:+PARTS="$PARTS"} \
  /work/foreshard-gpu/bench/gpu/run.sh /work/out
cp "$root"/work/out/* "$out/"
python3 "$(dirname "$0")/report.py" "$out/results.jsonl" >"$out/page.md"
echo "page: $out/page.md"
