#!/usr/bin/env bash
# Everything that is wanted of a GPU, in ten minutes, from the archive that pack.sh makes (or from a checkout, with PROGRAM=build/.../foreshard).
# Needs the driver, the libraries of CUDA 13 and python3; PyTorch where it is to be compared. No network, nothing is installed.
#
#   bench/gpu/run.sh OUT            parts in the order of their worth, each under its own time limit
#   PARTS="selftest train" ...      these only
#   SIZE=tiny ...                   sizes for a GPU that is not there (tests/cli/gpu_bench_test.cpp)
#   SECONDS_IN_ALL=570 ...          what is not done by then is left out
#
# OUT gets results.jsonl (a line per part, written as it ends), cuda.profile.json.gz and logs.tar.gz; report.py makes docs/gpu-results.md of the first.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(mkdir -p "${1:?usage: run.sh OUT}" && cd "$1" && pwd) || exit 1
all="selftest train losses calibrate predict sanitizer kernels graphs nccl"
seconds_in_all=${SECONDS_IN_ALL:-570}
size=${SIZE:-full}

# Seconds that a part may take.
limit_of() {
  case $1 in
    machine | selftest) echo 60 ;;
    train) echo 260 ;;
    losses) echo 40 ;;
    calibrate) echo 90 ;;
    predict) echo 80 ;;
    sanitizer) echo 60 ;;
    kernels) echo 60 ;;
    *) echo 40 ;;
  esac
}

scratch=$(mktemp -d)
results=$out/results.jsonl
running=
: >"$results"

# What there is goes to OUT, whatever ends the script.
keep() {
  trap - EXIT TERM INT
  [ -z "$running" ] || kill -- "-$running" 2>/dev/null
  (cd "$scratch" && find . -name '*.log' -size -4000k -print0 | tar --null -czf "$out/logs.tar.gz" -T -) 2>/dev/null
  [ ! -s "$scratch/cuda.profile.json" ] || gzip -9c "$scratch/cuda.profile.json" >"$out/cuda.profile.json.gz"
  rm -rf "$scratch"
}
trap keep EXIT
trap 'keep; exit 143' TERM
trap 'keep; exit 130' INT

# The program finds its data, cuBLASLt, cuDNN and NCCL: those of the Python that has PyTorch, else the toolkit's.
PROGRAM=${PROGRAM:-$root/foreshard}
[ -x "$PROGRAM" ] || { echo "run.sh: $PROGRAM is no program: unpack the archive of pack.sh, or set PROGRAM" >&2; exit 1; }
PROGRAM=$(cd "$(dirname "$PROGRAM")" && pwd)/$(basename "$PROGRAM")
python=$(command -v python3) || { echo "run.sh: no python3" >&2; exit 1; }
wheels=$("$python" - <<'PY'
import glob, os, sysconfig
places = {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}
print(":".join(sorted(folder for place in places for folder in glob.glob(os.path.join(place, "nvidia", "*", "lib")))))
PY
)
toolkit=${CUDA_HOME:-/usr/local/cuda}
export LD_LIBRARY_PATH="${wheels:+$wheels:}$toolkit/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [ -z "${FORESHARD_NCCL:-}" ]; then
  for folder in ${wheels//:/ }; do
    [ ! -e "$folder/libnccl.so.2" ] || export FORESHARD_NCCL="$folder/libnccl.so.2"
  done
fi
gpu=${GPU_NAME:-}
if [ -z "$gpu" ]; then
  case $(timeout 20 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) in
    *H200*) gpu=h200 ;;
    *) gpu=h100-80 ;;
  esac
fi
cluster=dgx-h100
[ "$gpu" != h200 ] || cluster=hgx-h200
export FORESHARD_PRODUCTS="$scratch/products.json"  # algorithms of products, timed once for all parts
export PROGRAM FORESHARD_DATA="${FORESHARD_DATA:-$root}" SIZE="$size" GPU_NAME="$gpu" CLUSTER="$cluster" PATH="$PATH:$toolkit/bin"

# line PART STATE SECONDS [FILE]: adds what FILE holds, a JSON object, or null.
line() {
  "$python" - "$@" >>"$results" <<'PY'
import json, sys
part, state, seconds, *file = sys.argv[1:]
try:
    data = json.load(open(file[0])) if file else None
except (OSError, ValueError):
    data = None
print(json.dumps({"part": part, "state": state, "seconds": int(seconds), "data": data}))
PY
}

for part in machine ${PARTS:-$all}; do  # the page needs what the first tells
  limit=$(limit_of "$part")
  left=$((seconds_in_all - SECONDS))
  if [ "$left" -lt 1 ]; then line "$part" "no time left" 0; continue; fi
  [ "$limit" -le "$left" ] || limit=$left
  begin=$SECONDS
  # In a group of its own, so that nothing of a part outlives it.
  setsid timeout --kill-after=5 "$limit" "$python" "$here/parts.py" "$part" "$scratch" >"$scratch/$part.out" 2>"$scratch/$part.log" &
  running=$!
  wait "$running"
  code=$?
  kill -- "-$running" 2>/dev/null
  running=
  # The last line is the newest state of what the part found: it tells one after each of its steps.
  tail -n 1 "$scratch/$part.out" >"$scratch/$part.json"
  case $code in
    0) state=ok ;;
    124 | 137) state="time limit of $limit s" ;;
    *) state="failed: $(tail -n 1 "$scratch/$part.log" | cut -c1-300)" ;;
  esac
  line "$part" "$state" $((SECONDS - begin)) "$scratch/$part.json"
  echo "$part: $state, $((SECONDS - begin)) s"
done
echo "written: $results"
