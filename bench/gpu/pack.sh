#!/usr/bin/env bash
# Packs what run.sh needs on a bare GPU machine into one archive of at most 45 MB: the program without SimGrid for x86-64-v3, its CUDA modules for sm_90,
# the libraries that it needs beside glibc, models and topologies, the scripts. Needs the CUDA toolkit (nvcc), no GPU.
#
#   bench/gpu/pack.sh [ARCHIVE]          (build/foreshard-gpu.tar.xz)
#   BUILD=FOLDER ...                     the build folder (build/gpu-pack)
#   MODULE=libforeshard_cuda.so ...      another CUDA module: a fake one, for try_bare.sh
#
# There: tar xf foreshard-gpu.tar.xz && foreshard-gpu/bench/gpu/run.sh OUT
set -euo pipefail
cd "$(dirname "$0")/../.."
archive=$(realpath -m "${1:-build/foreshard-gpu.tar.xz}")
build=${BUILD:-build/gpu-pack}
most=45000000

[ -e build/cudnn/include/cudnn_frontend.h ] || scripts/cudnn_headers.sh
# An RPATH in the old form also finds what the libraries themselves need, and goes before LD_LIBRARY_PATH, which is PyTorch's.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFORESHARD_SIMGRID=OFF -DFORESHARD_TESTS=OFF -DFORESHARD_BENCH=OFF -DFORESHARD_GUI=OFF \
  -DFORESHARD_CUDA=ON -DFORESHARD_CUDA_ARCHITECTURES=90 -DFORESHARD_HOST_ARCH=x86-64-v3 "-DCMAKE_INSTALL_RPATH=\$ORIGIN/lib" \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build "$build" --parallel "${JOBS:-2}" --target foreshard
if [ -z "${MODULE:-}" ]; then
  cmake --build "$build" --parallel "${JOBS:-2}" --target foreshard_cuda
  cmake --build "$build" --target foreshard_cudnn || echo "pack.sh: no attention by cuDNN: its headers are not here"
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
folder=$stage/foreshard-gpu
mkdir -p "$folder/lib" "$folder/bench/gpu"
cp "$build/foreshard" "$folder/"
cp "${MODULE:-$build/libforeshard_cuda.so}" "$folder/libforeshard_cuda.so"
[ ! -e "$build/libforeshard_cudnn.so" ] || [ -n "${MODULE:-}" ] || cp "$build/libforeshard_cudnn.so" "$folder/"
strip "$folder/foreshard" "$folder"/libforeshard_*.so

# Where the loader finds a library here.
place_of() { ldconfig -p | awk -v name="$1" '$1 == name && !found++ { print $NF }'; }
libraries_of() { ldd "$1" | awk '/=> \// { print $3 }'; }
openblas=$(place_of libopenblas.so.0)
[ -n "$openblas" ] || { echo "pack.sh: no libopenblas.so.0 here" >&2; exit 1; }
cp -L "$openblas" "$folder/lib/libopenblas.so.0"
for library in $(libraries_of "$folder/foreshard") $(libraries_of "$openblas"); do
  case $(basename "$library") in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;;  # glibc: the machine's own
    *) cp -Ln "$library" "$folder/lib/" ;;
  esac
done

cp -r models topologies frameworks accuracy LICENSE "$folder/"
cp bench/gpu/run.sh bench/gpu/*.py "$folder/bench/gpu/"
git rev-parse --short HEAD >"$folder/commit"
mkdir -p "$(dirname "$archive")"
tar -C "$stage" --owner=0 --group=0 --sort=name -cf - foreshard-gpu | xz -9e --threads=1 >"$archive"
size=$(stat -c %s "$archive")
echo "$archive: $size bytes"
[ "$size" -le "$most" ] || { echo "pack.sh: more than $most bytes" >&2; exit 1; }
