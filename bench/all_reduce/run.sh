#!/usr/bin/env bash
# All-reduce over processes of this machine: the executor's TCP communicator beside Open MPI's MPI_Allreduce, which goes through shared
# memory, and beside Open MPI held to TCP. Prints microseconds (best of many) and ratios; 1 is as fast as Open MPI.
#   bench/all_reduce/run.sh BUILD_FOLDER [PROCESSES...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
command -v mpirun >/dev/null && command -v mpicxx >/dev/null || { echo "needs openmpi-bin and libopenmpi-dev"; exit 1; }
cmake --build "$build" --target all_reduce_tcp >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicxx -O2 -std=c++20 -o "$work/mpi" "$here/mpi.cpp"
run() { mpirun --allow-run-as-root --oversubscribe -np "$1" "${@:2}"; }
[ $# -gt 0 ] || set -- 2 4
for n in "$@"; do
  run "$n" "$work/mpi" >"$work/shared"
  run "$n" --mca btl tcp,self "$work/mpi" >"$work/tcp"
  MASTER_PORT=$((20000 + RANDOM % 10000)) run "$n" "$build/bench/all_reduce/all_reduce_tcp" >"$work/own"
  echo "$n processes (us, best)"
  grep -v '^#' "$work/own" | paste -d ' ' - "$work/shared" "$work/tcp" |
      awk '{printf "%9d B  own %9.1f  Open MPI %9.1f  ratio %.2f  Open MPI over TCP %9.1f  ratio %.2f  (median: own %.1f, Open MPI %.1f, ratio %.2f)\n",
            $1, $2, $5, $5 / $2, $8, $8 / $2, $3, $6, $6 / $3}'
  grep '^#' "$work/own"
done
