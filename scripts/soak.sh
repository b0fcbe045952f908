#!/usr/bin/env bash
# Kills a training again and again, at moments and in processes drawn at random, while it saves after every step, and goes on with another number
# of processes each time. Every third is no kill but a SIGTERM, after which all have to end with a checkpoint. At the end: no process was left hanging, every checkpoint could be read, no step was lost, and the losses are to the bit
# those of a training that nobody killed.
#   scripts/soak.sh FORESHARD KILLS [SEED]
set -euo pipefail
program=$(realpath "$1") kills=$2
RANDOM=${3:-1}
export OPENBLAS_NUM_THREADS=1 LC_ALL=C
work=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done; rm -rf "$work"' EXIT
cd "$work"
exec 3>&2 2>/dev/null  # the shell tells of every job that was killed
"$program" lower --model gpt2-124m --cluster dgx-a100 --gpus 8 --set model.n_layer=2 --set model.n_embd=32 --set model.n_head=4 \
  --set model.vocab_size=64 --set model.n_positions=16 --tp 2 --pp 2 --dp 2 --zero 1 --global-batch 8 --precision fp64 \
  --save-plan p.plan.json >/dev/null

complain() { echo "soak: $*" >&3; tail -n 3 err.* >&3 || true; exit 1; }
step_of() { head -c 4000 kept | grep -ao '"step": *"[0-9]*' | grep -o '[0-9]*$'; }

# start PROCESSES OPTIONS...: their numbers in pids.
start() {
  local count=$1 port=$((20000 + RANDOM % 12000)) r
  shift
  pids=()
  for ((r = 0; r < count; r++)); do
    RANK=$r WORLD_SIZE=$count MASTER_PORT=$port FORESHARD_JOB=soak-$$ "$program" run p.plan.json --rendezvous 5 --patience 5 "$@" >out.$r 2>err.$r &
    pids+=($!)
  done
}
# Waits for a process, for 60 s at most (the bound is for a machine that is busy): its code in code.
await() {
  local i
  for ((i = 0; i < 600; i++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  kill -0 "$1" 2>/dev/null && complain "process $1 hangs"
  code=0
  wait "$1" || code=$?
}

last=0 resumed=0 hit=0
for ((kill = 1; kill <= kills; kill++)); do
  count=$((2 + RANDOM % 3))
  options=(--steps 100000 --save kept --save-every 1 --progress json)
  [ -e kept ] && options+=(--resume kept)
  start "$count" "${options[@]}"
  # Some kills come while they meet, most while they train: every second one waits for a step, on a busy machine too.
  if [ $((kill % 2)) -eq 0 ]; then
    for ((i = 0; i < 600; i++)); do
      grep -qs '"step"' err.0 && break
      kill -0 "${pids[0]}" 2>/dev/null || break
      sleep 0.1
    done
  fi
  sleep "0.$(printf %03d $((RANDOM % 500)))"
  victim=$((RANDOM % count))
  signal=9
  # A process that has not begun to train knows no other answer to a SIGTERM than to end.
  if [ $((kill % 3)) -eq 0 ] && grep -qs '"step"' err.0; then signal=15; fi
  if kill -$signal "${pids[$victim]}" 2>/dev/null; then hit=$((hit + 1)); fi
  for ((r = 0; r < count; r++)); do
    await "${pids[$r]}"
    expected=3
    [ "$signal" -eq 9 ] || expected=130
    [ "$r" -eq "$victim" ] && [ "$signal" -eq 9 ] || [ "$code" -eq "$expected" ] ||
      complain "signal $signal number $kill to process $victim: process $r of $count ended with $code"
  done
  pids=()
  [ -e kept ] || continue
  now=$(step_of)
  [ -n "$now" ] && [ "$now" -ge "$last" ] || complain "kill $kill: the checkpoint went from step $last to \"$now\""
  [ "$now" -gt "$last" ] && resumed=$((resumed + 1))
  last=$now
done
[ -e kept ] || complain "no checkpoint after $kills kills"
start 3 --steps 1 --resume kept --json
for p in "${pids[@]}"; do await "$p"; [ "$code" -eq 0 ] || complain "the last start ended with $code"; done
pids=()
loss() { grep -o '"loss": *[^,}]*' "$1" | tail -n 1; }
"$program" run p.plan.json --launcher none --patience 60 --steps $((last + 1)) --json --progress none >alone
[ "$(loss out.0)" = "$(loss alone)" ] || complain "after $last steps $(loss out.0), without kills $(loss alone)"
echo "soak: $hit kills, $resumed of them after a step more, $last steps kept; $(loss alone) as without kills"
