#!/usr/bin/env bash
# The pictures of docs/gui.md: every view in dark and light, English and Chinese, 1x and 2x, by one command.
#   scripts/screenshots.sh                 the pictures of the manual into docs/gui
#   scripts/screenshots.sh --all FOLDER    all 56 into FOLDER, and a sheet of all at each scale into docs/gui (needs imagemagick)
#   scripts/screenshots.sh --techniques [NAME...]    the timelines of single techniques into docs/gui, all or those named
# Needs a built foreshard-gui (BUILD=build/release) and, for Chinese, a font that has it (fonts-noto-cjk). No display. Pictures
# become small where pngquant is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
program=$build/foreshard-gui
[ -x "$program" ] || { echo "foreshard: $program is not there; build it with ./quickstart.sh --gui" >&2; exit 1; }
export QT_QPA_PLATFORM=offscreen XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-$(mktemp -d)}
views="window timeline memory topology search compare inspector"

# shot FILE VIEW THEME LANGUAGE SCALE [FILE...]
shot() {
  local file=$1 view=$2 theme=$3 language=$4 scale=$5
  shift 5
  "$program" --screenshot "$file" --view "$view" --theme "$theme" --lang "$language" --scale "$scale" \
    --size "${SIZE:-1600x1000}" "$@" 2>/dev/null
  echo "$file"
}

make_small() {
  if command -v pngquant >/dev/null; then pngquant --force --ext .png --skip-if-larger 200 "$@" || true; fi
}

# A row per view, a column per theme and language.
sheet() {
  local folder=$1 scale=$2 files=()
  for view in $views; do
    for kind in dark-en dark-zh_CN light-en light-zh_CN; do files+=("$folder/$view-$kind-${scale}x.png"); done
  done
  local width=$((240 + 240 * scale))  # 480, 720; 64 colours without dots between them: at most 2 MB
  montage "${files[@]}" -tile 4x -geometry "${width}x$((width * 5 / 8))+4+4" -background '#808080' png:- |
    convert - +dither -colors 64 -define png:compression-level=9 "PNG8:docs/gui/all-${scale}x.png"
  make_small "docs/gui/all-${scale}x.png"
  echo "docs/gui/all-${scale}x.png"
}

# technique NAME HEIGHT OPTIONS...: the timeline of `foreshard simulate OPTIONS` as docs/gui/NAME.png, unless others were asked for.
asked=()
technique() {
  local name=$1 height=$2
  shift 2
  if [ ${#asked[@]} -gt 0 ] && [[ " ${asked[*]} " != *" $name "* ]]; then return; fi
  "$build/foreshard" simulate "$@" --save-result "$work/$name.result" >/dev/null
  SIZE=${width:-800}x$height shot "docs/gui/$name.png" timeline light en 1 "$work/$name.result"
  make_small "docs/gui/$name.png"
}

techniques() {
  local pipeline="--model gpt2-355m --cluster dgx-a100 --nodes 1 --dp 2 --pp 4 --global-batch 16 --micro-batch 1"
  local versions="--model llama-3-8b --cluster dgx-h100 --nodes 1 --tp 2 --pp 4 --global-batch 12 --micro-batch 1"
  local replicas="--model gpt2-355m --cluster eth25-a100-x2 --micro-batch 8 --global-batch 128 --bucket 100MB"
  local tensor="--model gpt2-1.5b --set model.n_head=20 --cluster pcie-a100-8 --tp 4 --dp 2 --attention unfused --micro-batch 4 --global-batch 16"
  local name
  for name in looped-bfs interleaved-zb-1p zb-v v-half v-min; do
    technique schedule-$name 360 $pipeline --schedule $name --virtual-stages 2
  done
  for name in zb-h1 zb-h2 dualpipe; do technique schedule-$name 360 $pipeline --schedule $name; done
  for name in pipedream-2bw pipemare; do technique schedule-$name 360 $versions --schedule $name; done
  technique compression-dgc 300 $replicas --compress-gradients dgc:0.01 --compress-group 1
  technique compression-one-bit 300 $replicas --compress-gradients one-bit:100
  technique compression-eight-bit 300 $replicas --compress-gradients eight-bit --compress-group 1
  technique compression-nodes 300 $replicas --compress-gradients eight-bit
  technique compression-tokens 300 $tensor --compress-activations token-topk:0.5
  technique compression-activations 300 $tensor --compress-activations segmented:8
  for name in ring tree double-tree hierarchical 2d parameter-server gather-to-root; do
    technique sums-$name 300 --model gpt2-355m --cluster eth25-a100-x8 --micro-batch 8 --global-batch 512 --bucket 100MB --algorithm $name
  done
  technique sums-nvlink-sharp 300 --model gpt2-1.5b --cluster dgx-h100 --nodes 1 --dp 8 --micro-batch 8 --global-batch 64 --algorithm nvlink-sharp
  local host="--model gpt2-1.5b --cluster workstation-rtx4090 --micro-batch 2 --global-batch 8 --granularity layer"
  local pictures="--cluster workstation-rtx4090 --gpus 1 --micro-batch 64 --global-batch 64 --granularity op"
  technique host-optimizer 300 $host --offload-optimizer host
  technique host-optimizer-device 300 $host --offload-optimizer host --updated-on device
  technique host-drives 300 $host --offload-optimizer nvme
  technique host-parameters 300 $host --offload-optimizer host --offload-gradients host --offload-parameters host
  technique host-activations 300 $host --offload-optimizer host --offload-activations all
  technique host-late 300 --model llama-2-7b --cluster dgx-h100 --gpus 1 --dp 1 --seq 4096 --micro-batch 1 --global-batch 32 --recompute full \
    --offload-optimizer host --schedule pipedream-2bw --microbatch-group 8
  technique host-per-layer 300 --model gpt2-355m --cluster workstation-rtx4090 --micro-batch 2 --global-batch 8 --granularity layer --update-per-layer
  technique host-greedy 300 --model gpt2-1.5b --cluster workstation-rtx4090 --gpus 1 --micro-batch 4 --global-batch 4 --granularity layer --policy greedy \
    --offload-budget 12GB
  technique host-vdnn 300 --model vgg-16 $pictures --offload-activations vdnn
  technique host-free-time 300 --model resnet-50 $pictures --offload-activations free-time --offload-budget 2500MB
  technique asynchronous-server 360 --model gpt2-355m --cluster dgx-a100 --nodes 1 --asynchronous --micro-batch 8 --global-batch 56 --granularity layer
  width=1640 technique experts 360 --model qwen3-30b-a3b --cluster dgx-h100 --nodes 1 --dp 8 --ep 8 --zero 1 --seq 4096 --global-batch 16 --expert-load 2 \
    --granularity op --set model.num_hidden_layers=2
  technique layouts 300 --model toy-matmul --cluster pcie-a100-8 --gpus 4 --tp 4 --dp 1 --granularity op
  technique schedule-best 360 --model gpt2-355m --cluster dgx-a100 --nodes 1 --pp 4 --dp 1 --global-batch 12 --layer-split 9,6,5,4 --schedule best
  printf '0F0,0F1,0F2,0B2,0F3,0B3,0B1,0B0\n1F0,1F1,1F2,1B2,1F3,1B3,1B1,1B0\n' >"$work/own.csv"
  technique schedule-file 300 --model gpt2-355m --cluster dgx-a100 --nodes 1 --pp 2 --dp 1 --micro-batch 1 --global-batch 4 --schedule "file:$work/own.csv"
}

if [ "${1:-}" = --techniques ]; then
  asked=("${@:2}")
  work=$(mktemp -d)
  techniques
elif [ "${1:-}" = --all ]; then
  folder=${2:?a folder}
  mkdir -p "$folder"
  # A search over one node takes seconds; that of the worked example minutes.
  cat >"$folder/search.workspace.json" <<'END'
{"format": "foreshard workspace", "version": 1, "choices": {"model": "gpt2-1.5b", "cluster": "dgx-a100", "nodes": 1,
 "strategy": {"global_batch": "64"}, "settings": []}, "result": "", "measured": "", "granularity": "layer", "bookmarks": [],
 "page": "timeline", "geometry": "", "layout": ""}
END
  for view in $views; do
    for theme in dark light; do
      for language in en zh_CN; do
        for scale in 1 2; do
          file=$folder/$view-$theme-$language-${scale}x.png
          if [ $view = search ]; then
            shot "$file" $view $theme $language $scale "$folder/search.workspace.json"
          else
            shot "$file" $view $theme $language $scale
          fi
        done
      done
    done
  done
  if command -v montage >/dev/null; then
    for scale in 1 2; do sheet "$folder" $scale; done
  else
    echo "no sheets: montage (package imagemagick) is not installed"
  fi
else
  mkdir -p docs/gui
  for view in $views table; do shot docs/gui/$view.png "$view" dark en 1; done
  # A plan that runs here, its prediction, and its run: measured below predicted.
  work=$(mktemp -d)
  "$build/foreshard" lower --model gpt2-124m --cluster dgx-a100 --nodes 1 --gpus 2 --pp 2 --dp 1 --tp 1 --global-batch 4 --seq 64 \
    --precision fp32 --set model.n_layer=4 --set model.n_embd=128 --set model.n_head=4 --set model.vocab_size=512 \
    --save-plan "$work/p.plan.json" >/dev/null
  "$build/foreshard" simulate --plan "$work/p.plan.json" --save-result "$work/p.result" >/dev/null
  "$build/foreshard" run "$work/p.plan.json" --time emulated --save-result "$work/m.result" >/dev/null
  shot docs/gui/run.png window dark en 1 "$work/p.result" "$work/m.result"
  # A job of one stage, so that every policy is possible.
  cat >"$work/policies.workspace.json" <<'END'
{"format": "foreshard workspace", "version": 1, "choices": {"model": "llama-2-7b", "cluster": "dgx-a100", "nodes": 1,
 "strategy": {"dp": "8", "seq": "2048", "micro_batch": "1", "zero": "3"}, "settings": []}, "result": "", "measured": "", "granularity": "layer",
 "bookmarks": [], "page": "timeline", "geometry": "", "layout": ""}
END
  shot docs/gui/policies.png policies dark en 1 "$work/policies.workspace.json"
  shot docs/gui/window-light-zh.png window light zh_CN 1
  shot docs/gui/window-contrast.png window contrast en 1
  make_small docs/gui/{window,timeline,memory,topology,search,compare,policies,inspector,table,run,window-light-zh,window-contrast}.png
fi
