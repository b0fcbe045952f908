#!/usr/bin/env bash
# GPT-3 175B on 1024 A100s: tensor parallelism in the node, 16 pipeline stages, 8 replicas, 1536 sequences per iteration.
"${1:-foreshard}" simulate --model gpt3-175b --cluster dgx-a100-x128 --tp 8 --pp 16 --dp 8 --global-batch 1536
