#!/usr/bin/env bash
# Everything that needs a GPU, in one go: builds for sm_90 (ARCH=...), runs selftest (NCCL's collectives too) and calibrate, trains models of several sizes on one
# rank, strategies on 2 to 8 virtual ranks against the single rank, and the same model in PyTorch where it can be imported.
# Writes OUT/results.md (default build/gpu-results) with device, driver and library versions, and the logs beside it.
# DRY=1: no GPU; builds, makes every plan, prints what would be run. QUICK=1: small sizes only.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(mkdir -p "${1:-build/gpu-results}" && cd "${1:-build/gpu-results}" && pwd)
arch=${ARCH:-90}
dry=${DRY:-}
quick=${QUICK:-}
build=${BUILD:-build/gpu}
results=$out/results.md
steps=${STEPS:-10}

say() { printf '%s\n' "$*" | tee -a "$results"; }
# run LOG command...: the command's output to OUT/LOG.log; in a dry run it is printed only.
run() {
  local log=$out/$1.log
  shift
  echo "\$ $*" >"$log"
  if [ -n "$dry" ]; then echo "would run: $*"; return 0; fi
  "$@" >>"$log" 2>&1
}
# number FILE KEY: a top-level number of a JSON file
number() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

: >"$results"
if [ -z "${PROGRAM:-}" ]; then
  cmake -B "$build" -DCMAKE_BUILD_TYPE=Release -DFORESHARD_CUDA=ON -DFORESHARD_CUDA_ARCHITECTURES="$arch" -DFORESHARD_TESTS=OFF \
    -DFORESHARD_BENCH=OFF -DFORESHARD_GUI=OFF . >"$out/configure.log" 2>&1 || { cat "$out/configure.log"; exit 1; }
  cmake --build "$build" --parallel "$(nproc)" --target foreshard foreshard_cuda >"$out/build.log" 2>&1 || { tail -n 40 "$out/build.log"; exit 1; }
fi
program=${PROGRAM:-$build/foreshard}

say "# GPU results"
say
say "Commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $(date -u +%Y-%m-%d), sm_$arch."
if command -v nvidia-smi >/dev/null; then
  say '```'
  say "$(nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv)"
  say '```'
fi

say; say "## selftest"; say
run selftest "$program" selftest --device cuda --all || say "FAILED: see selftest.log"
[ -n "$dry" ] || say "$(tail -n 1 "$out/selftest.log")"

# Collectives against the host: a rank per GPU; two on a single one where NCCL lets them (2.30.3). Each line says version and ranks.
say; say "## NCCL"; say
nccl_selftest() {  # LOG ENVIRONMENT...
  local log=$1
  shift
  run "$log" env "$@" "$program" selftest --device cuda --quick --nccl --all || say "FAILED: see $log.log"
  [ -n "$dry" ] || say "- $*: $(grep -c '^NCCL .*: ok,' "$out/$log.log") of $(grep -c '^NCCL ' "$out/$log.log") right, $(grep -o '^NCCL [^:]*' "$out/$log.log" | sort -u | tail -n 1)"
}
nccl_selftest nccl NCCL_DEBUG=WARN
nccl_selftest nccl-shared NCCL_DEBUG=WARN NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=4
gpus=2
[ -n "$dry" ] || gpus=$(nvidia-smi -L | wc -l)
if [ "$gpus" -gt 1 ]; then
  run nccl-calibrate "$program" calibrate --collectives --device cuda ${quick:+--quick} --name "${GPU_NAME:-h100-80}" --save-profile "$out/nccl.profile.json" ||
    say "FAILED: see nccl-calibrate.log"
  [ -n "$dry" ] || { say '```'; say "$(cat "$out/nccl-calibrate.log")"; say '```'; }
fi

say; say "## calibrate"; say
largest=$([ -n "$quick" ] && echo 1024 || echo 8192)
run calibrate "$program" calibrate --device cuda --precision fp32,bf16 --largest-product "$largest" --name "${GPU_NAME:-h100-80}" \
  --save-profile "$out/cuda.profile.json" || say "FAILED: see calibrate.log"
[ -n "$dry" ] || { say '```'; say "$(tail -n 60 "$out/calibrate.log")"; say '```'; }

# plan NAME options...: lowers, and prints the plan's file
plan() {
  local file=$out/$1.plan.json
  shift
  "$program" lower "$@" --save-plan "$file" >"$file.log" 2>&1 || { echo "lower failed: $*"; cat "$file.log"; return 1; }
  echo "$file"
}

gpt() {  # layers hidden heads: a GPT with these sizes at sequence 2048
  echo "--model gpt2-124m --set model.n_layer=$1 --set model.n_embd=$2 --set model.n_head=$3 --set model.n_positions=2048 --set model.vocab_size=50304 --seq 2048"
}
say; say "## One rank, bf16, sequence 2048, flash attention"; say
say "| model | micro-batch | iteration ms | tokens/s | arena GiB | loss |"
say "|---|---|---|---|---|---|"
sizes="124m:12:768:12:8 350m:24:1024:16:8 1b:24:1792:14:4"
[ -n "$quick" ] && sizes="124m:12:768:12:2"
for size in $sizes; do
  IFS=: read -r name layers hidden heads micro <<<"$size"
  # shellcheck disable=SC2046
  file=$(plan "one-$name" $(gpt "$layers" "$hidden" "$heads") --cluster dgx-h100 --gpus 1 --precision bf16 --attention flash \
    --micro-batch "$micro" --global-batch $((micro * 2))) || { say "| $name | $micro | $file |"; continue; }
  run "one-$name" "$program" run "$file" --device cuda --steps "$steps" --json --progress none --save-result "$out/one-$name.result" ||
    { say "| $name | $micro | FAILED: $(tail -n 1 "$out/one-$name.log") |"; continue; }
  [ -n "$dry" ] && continue
  sed 1d "$out/one-$name.log" >"$out/one-$name.json"
  say "| $name | $micro | $(python3 - "$out/one-$name.json" "$((micro * 2 * 2048))" <<'PY'
import json, sys
r = json.load(open(sys.argv[1])); t = r["iteration_time_s"]
print(f'{t * 1e3:.2f} | {int(sys.argv[2]) / t:.0f} | {r["arena_bytes"] / 2**30:.2f} | {r["steps"][0]["loss"]:.5f} -> {r["steps"][-1]["loss"]:.5f}', end=" ")
PY
)|"
  run "graphs-$name" "$program" run "$file" --device cuda --graphs --steps "$steps" --json --progress none && [ -z "$dry" ] &&
    sed 1d "$out/graphs-$name.log" >"$out/graphs-$name.json" &&
    say "| $name, graphs | $micro | $(python3 -c 'import json,sys; print("%.2f" % (json.load(open(sys.argv[1]))["iteration_time_s"] * 1e3))' "$out/graphs-$name.json") | | | |"
  run "compare-$name" "$program" simulate $(gpt "$layers" "$hidden" "$heads") --cluster dgx-h100 --gpus 1 --precision bf16 --attention flash \
    --micro-batch "$micro" --global-batch $((micro * 2)) --profile "$out/cuda.profile.json" --granularity op --save-result "$out/predicted-$name.result" &&
    run "compare-$name" "$program" compare "$out/predicted-$name.result" "$out/one-$name.result"
done

say; say "## Strategies on virtual ranks against one rank"; say
say "| strategy | precision | loss after $steps steps | one rank | relative difference |"
say "|---|---|---|---|---|"
small="--model gpt2-124m --set model.n_layer=4 --set model.n_embd=512 --set model.n_head=8 --set model.n_positions=256 --seq 256 --global-batch 16 --cluster dgx-h100"
for precision in fp32 bf16; do
  # shellcheck disable=SC2086
  file=$(plan "virtual-1-$precision" $small --gpus 1 --precision $precision --micro-batch 2) || { say "| one rank | $precision | $file |"; continue; }
  run "virtual-1-$precision" "$program" run "$file" --device cuda --steps "$steps" --json --progress none || say "| one rank | $precision | FAILED |"
  for strategy in "dp 2" "tp 2" "pp 2" "dp 4 --zero 1" "dp 2 --tp 2 --pp 2" "dp 8 --zero 3" "dp 2 --tp 4"; do
    name="virtual-$(echo "$strategy" | tr -d ' -')-$precision"
    # shellcheck disable=SC2086
    file=$(plan "$name" $small --$strategy --precision $precision --micro-batch 2) || { say "| $strategy | $precision | $file |"; continue; }
    run "$name" "$program" run "$file" --device cuda --steps "$steps" --json --progress none || { say "| $strategy | $precision | FAILED: $(tail -n 1 "$out/$name.log") |"; continue; }
    [ -n "$dry" ] && continue
    say "| $strategy | $precision | $(python3 - "$out/$name.log" "$out/virtual-1-$precision.log" <<'PY'
import json, sys
many, one = (json.loads(open(f).read().split("\n", 1)[1])["steps"][-1]["loss"] for f in sys.argv[1:3])
print(f"{many:.8f} | {one:.8f} | {abs(many - one) / abs(one):.2e}", end=" ")
PY
)|"
  done
done

# One rank per GPU by NCCL, with and without graphs, against the executor's own communicator: the last digits may differ with two ranks or more.
say; say "## Trainings by NCCL"; say
say "| ranks | options | loss after $steps steps | own communicator |"
say "|---|---|---|---|"
ranks="1"
[ "$gpus" -gt 1 ] && ranks="1 $gpus"
for count in $ranks; do
  # shellcheck disable=SC2086
  file=$(plan "nccl-$count" $small --gpus "$count" --dp "$count" --precision fp32 --micro-batch 1) || { say "| $count | | $file | |"; continue; }
  run "nccl-own-$count" "$program" run "$file" --device cuda --steps "$steps" --json --progress none || { say "| $count | own communicator | FAILED | |"; continue; }
  for options in "--nccl" "--nccl --graphs"; do
    name="nccl-run-$count$(echo "$options" | tr -d ' ')"
    # shellcheck disable=SC2086
    run "$name" "$program" run "$file" --device cuda $options --steps "$steps" --json --progress none || { say "| $count | $options | FAILED: $(tail -n 1 "$out/$name.log") | |"; continue; }
    [ -n "$dry" ] && continue
    say "| $count | $options | $(python3 - "$out/$name.log" "$out/nccl-own-$count.log" <<'PY'
import json, sys
print(" | ".join("%.8f" % json.loads(open(f).read().split("\n", 1)[1])["steps"][-1]["loss"] for f in sys.argv[1:3]), end=" ")
PY
)|"
  done
done

say; say "## PyTorch, the same model"; say
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  for size in $sizes; do
    IFS=: read -r name layers hidden heads micro <<<"$size"
    run "torch-$name" python3 bench/gpu/torch_gpt.py --layers "$layers" --hidden "$hidden" --heads "$heads" --sequence 2048 --micro-batch "$micro" --steps "$steps"
    say "- $name: $(tail -n 1 "$out/torch-$name.log")"
  done
else
  say "Not compared: PyTorch with CUDA cannot be imported here."
fi
echo "written: $results"
