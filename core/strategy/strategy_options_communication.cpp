// The part of the table in strategy_options.cpp that is about communication.
#include "core/plan/plan_words.h"
#include "core/strategy/strategy_option_kinds.h"

namespace foreshard::option_kinds {

static std::vector<Algorithm> every_algorithm() {
  std::vector<Algorithm> all;
  for (std::size_t i = 0; i < words<Algorithm>().size(); ++i) all.push_back(static_cast<Algorithm>(i));
  return all;
}

std::vector<StrategyOption> communication_options() {
  const std::string group = "communication";
  return {
      size_or_auto([](Strategy& s) -> Bytes& { return s.communication.bucket; },
                   {.path = "bucket",
                    .flag = "--bucket",
                    .unit = "bytes",
                    .help = "size of a gradient bucket; 0: max(40e6, 1e6 dp) elements; auto: chosen, with --sum-order priority "
                            "parts and credit too",
                    .group = group}),
      overlap({.path = "overlap",
               .flag = "--overlap",
               .help = "communication that overlaps with computation: any of grad, param (tables: zero 1+), p2p and tp, or "
                       "none; auto: as "
                       "the framework does",
               .group = group}),
      optional_choice(part(&Strategy::communication, &CommunicationChoice::algorithm), every_algorithm(),
                      {.path = "algorithm",
                       .flag = "--algorithm",
                       .help = "algorithm of collectives; where it does not apply, a ring; auto: the cheapest for each",
                       .group = group}),
      operator_parts(
          {.path = "parts",
           .flag = "--parts",
           .help = "parts along the samples of a micro-batch that attention and MLP of a layer are cut into, one number "
                   "for both or one each, or layer by layer 2,4x11;1,8: the sum over tp of a part overlaps with the next "
                   "part; auto: chosen for each layer",
           .constraint = "tp above 1; divide micro_batch; not with cp, stages or fp8",
           .group = group}),
      integer(part(&Strategy::communication, &CommunicationChoice::servers), 0, 1 << 20,
              {.path = "servers",
               .flag = "--servers",
               .unit = "GPUs",
               .help = "members of a group that serve, 0: all; with --asynchronous GPUs that serve and do not train",
               .constraint = "with --algorithm parameter-server or --asynchronous",
               .group = group}),
      choice(part(&Strategy::communication, &CommunicationChoice::server_placement),
             {ServerPlacement::First, ServerPlacement::Spread, ServerPlacement::Nodes},
             {.path = "server_placement",
              .flag = "--server-placement",
              .help =
                  "which members of a group, or with --asynchronous which GPUs, serve: the first ones, at equal distances over "
                  "all (spread), or one after another over the nodes (nodes)",
              .constraint = "with --servers below the members of a group, or --asynchronous",
              .group = group}),
      optional_choice(
          part(&Strategy::communication, &CommunicationChoice::transfers), {Transfers::Whole, Transfers::Split},
          {.path = "transfers",
           .flag = "--transfers",
           .help = "what tensor-parallel ranks send to another stage of a value that all of them hold: each the whole, "
                   "or each its part, and the receiving ranks gather (split); auto: as the framework does",
           .constraint = "split: not with --stages, whose groups differ in size",
           .group = group}),
      flag(
          part(&Strategy::communication, &CommunicationChoice::asynchronous),
          {.path = "asynchronous",
           .flag = "--asynchronous",
           .help = "replicas do not wait for each other: parameter servers on GPUs of their own (--servers; by default one for "
                   "each rank of a tensor-parallel group) take their gradients in turn, update with each, and send the "
                   "parameters back",
           .constraint = "cp 1; no experts, ZeRO, offload or dynamic loss scale; clipping with one server and workers of one GPU",
           .group = group}),
      choice(part(&Strategy::communication, &CommunicationChoice::order), {SumOrder::Ready, SumOrder::Priority},
             {.path = "sum_order",
              .flag = "--sum-order",
              .help = "sums of gradients as they are ready, or first what the next forward needs first, which then waits for "
                      "nothing else",
              .group = group}),
      size([](Strategy& s) -> Bytes& { return s.communication.partition; },
           {.path = "partition",
            .flag = "--partition",
            .unit = "bytes",
            .help = "parts of sums of gradients, which others may overtake; 0: whole buckets",
            .constraint = "with --sum-order priority",
            .group = group}),
      size([](Strategy& s) -> Bytes& { return s.communication.credit; },
           {.path = "credit",
            .flag = "--credit",
            .unit = "bytes",
            .help = "what may be under way at once of sums of gradients; 0: one part",
            .constraint = "with --sum-order priority or --algorithm gather-to-root",
            .group = group}),
  };
}

std::vector<StrategyOption> compression_options() {
  const std::string group = "communication";
  return {
      compression(
          &CommunicationChoice::gradients,
          {.path = "compress_gradients",
           .flag = "--compress-gradients",
           .help = "how replicas send gradients: dgc:SHARE (the largest, the rest waits), one-bit (signs; with Adam one-bit:N, "
                   "moments after N updates), eight-bit, segmented:BITS (levels for a centre and two tails) or "
                   "segmented:BITSxSEGMENTS",
           .constraint = "no dynamic loss scale, gradients and parameters on the device; with ZeRO not one-bit with Adam, from "
                         "ZeRO 2 on not dgc",
           .group = group}),
      integer(part(&Strategy::communication, &CommunicationChoice::compress_group), 0, 1 << 20,
              {.path = "compress_group",
               .flag = "--compress-group",
               .unit = "GPUs",
               .help = "data-parallel GPUs, with context-parallel ones, that add their gradients as they are before each sends "
                       "codes of its part to the other groups; 0: those of a node; 1: all send codes",
               .constraint = "with --compress-gradients; divides dp x cp; ZeRO 0, no experts over several GPUs, not one-bit "
                             "with Adam",
               .group = group}),
      compression(
          &CommunicationChoice::activations,
          {.path = "compress_activations",
           .flag = "--compress-activations",
           .help = "how tensor-parallel ranks sum activations: token-topk:SHARE (rows of the tokens with the most attention), "
                   "segmented:BITS or segmented:BITSxSEGMENTS, or both: token-topk:SHARE,segmented:BITS",
           .constraint = "token-topk: --attention unfused, cp 1",
           .group = group}),
      compression(
          &CommunicationChoice::dispatch,
          {.path = "compress_dispatch",
           .flag = "--compress-dispatch",
           .help = "how rows of tokens are sent to their experts, and gradients of results: fp8 (E4M3 with a scale for 128 "
                   "numbers) or eight-bit (integers with a scale for 256); the way back stays as it is",
           .constraint = "ep above 1; not with --expert-dispatcher all-gather",
           .group = group}),
  };
}

}  // namespace foreshard::option_kinds
