#include "gui/widgets/engine_words.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <QStringList>
#include <vector>

namespace foreshard {

namespace {

// %1, %2 ... stand for the values that the engine inserts, in this order; (s) and (es) are optional plural endings. The first sentence that
// matches is used, so longer ones come first.
constexpr const char* kSentences[] = {
    QT_TRANSLATE_NOOP("Engine", "%1: %2: found %3, expected %4"),
    QT_TRANSLATE_NOOP("Engine", "%1: found %2, expected %3"),
    QT_TRANSLATE_NOOP("Engine", "found %1 (part %2) in %3, expected %4"),
    QT_TRANSLATE_NOOP("Engine", "found %1 in %2, expected %3"),
    QT_TRANSLATE_NOOP("Engine", "found %1, expected %2"),
    QT_TRANSLATE_NOOP("Engine", "%1 (nearest: %2)"),
    QT_TRANSLATE_NOOP("Engine", "an integer from %1 to %2"),
    QT_TRANSLATE_NOOP("Engine", "a whole number from %1"),
    QT_TRANSLATE_NOOP("Engine", "a number of at least %1 and below %2, or a percentage such as %3"),
    QT_TRANSLATE_NOOP("Engine", "a number of at least %1 and below %2"),
    QT_TRANSLATE_NOOP("Engine", "a size of at least %1 with a unit (%2)"),
    QT_TRANSLATE_NOOP("Engine", "one of %1"),
    QT_TRANSLATE_NOOP("Engine", "none or some of %1"),
    QT_TRANSLATE_NOOP("Engine", "true or false"),
    QT_TRANSLATE_NOOP("Engine", "tp, cp, dp and role (and dp_outer), each once, in any order, such as %1"),
    QT_TRANSLATE_NOOP("Engine", "layers per stage such as %1 (%2: fourteen stages of three layers)"),
    QT_TRANSLATE_NOOP("Engine", "a layer in every stage but the first and the last"),
    QT_TRANSLATE_NOOP("Engine",
                      "LAYERS:DPxTP of each stage such as %1 (ten layers on two replicas of one GPU, then three stages of four "
                      "layers on one replica of two)"),
    QT_TRANSLATE_NOOP("Engine", "\"full:N\" with N layers of every stage, at least %1, or of each stage such as %2"),
    QT_TRANSLATE_NOOP("Engine", "%1, each:.., auto, best, rotor, revolve:N, graph or some of %2"),
    QT_TRANSLATE_NOOP("Engine", "tp %1 x cp %2 x pp %3 x dp %4 = %5 rank(s), but %6 has %7 GPU(s)"),
    QT_TRANSLATE_NOOP("Engine", "tp %1 x cp %2 x pp %3 = %4 does not divide the %5 GPU(s) of %6"),
    QT_TRANSLATE_NOOP("Engine", "ZeRO group of %1 rank(s) does not divide dp = %2"),
    QT_TRANSLATE_NOOP("Engine", "stages with degrees of their own run their operators whole, not in parts"),
    QT_TRANSLATE_NOOP("Engine", "operators in parts run on whole sequences, which cp %1 cuts"),
    QT_TRANSLATE_NOOP("Engine", "operators in parts would each scale their %1 factors by themselves"),
    QT_TRANSLATE_NOOP("Engine", "a layer has 2 operations that are cut into parts, attention and MLP: found %1 numbers"),
    QT_TRANSLATE_NOOP("Engine", "%1 parts do not divide the %2 sample(s) of a micro-batch"),
    QT_TRANSLATE_NOOP("Engine", "auto, or numbers of parts from 1 to 1024, such as 4 or 2,4, or layer by layer 2,4x11;1,8"),
    QT_TRANSLATE_NOOP("Engine", "auto, or four times F,I,W,C from 0 to 1e9, such as 2,2,1,0.1"),
    QT_TRANSLATE_NOOP("Engine", "more is alive at one time than a device has"),
    QT_TRANSLATE_NOOP("Engine", "a framework's memory is not known for schedules that hold every stage twice"),
    QT_TRANSLATE_NOOP("Engine", "\"%1\" would work on more than 2^50 elements or bytes at once, the most that plans have"),
    QT_TRANSLATE_NOOP("Engine", "global batch %1 is not a multiple of micro-batch %2 x dp %3 = %4"),
    QT_TRANSLATE_NOOP("Engine", "%1 micro-batch(es) per step are more than %2"),
    QT_TRANSLATE_NOOP("Engine", "virtual stages need a pipeline of at least 2 ranks: found %1 virtual stage(s) with pp 1"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 has one stage per rank, the strategy asks for %2"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 needs unsharded gradients, which ZeRO %2 shards"),
    QT_TRANSLATE_NOOP("Engine", "delay_wgrad is of schedules of cells; %1 is none"),
    QT_TRANSLATE_NOOP("Engine", "schedule best finds an order of one stage per rank, the strategy asks for %1"),
    QT_TRANSLATE_NOOP("Engine",
                      "schedule best finds an order for times that it knows, recompute %1 plans its runs for an order"),
    QT_TRANSLATE_NOOP("Engine", "%1 has no %2 arithmetic, only %3"),
    QT_TRANSLATE_NOOP("Engine", "%1 is a layer list: %2 is for the linear layers of transformers"),
    QT_TRANSLATE_NOOP("Engine", "no flash attention kernel for %1 on %2"),
    QT_TRANSLATE_NOOP("Engine", "%1 is a layer list: it can be split by data, tensor and pipeline parallelism, not by cp %2"),
    QT_TRANSLATE_NOOP("Engine", "%1 is a layer list: --parts cuts the attention and the MLP of transformer layers"),
    QT_TRANSLATE_NOOP("Engine", "placement has to name each of tp, cp, dp and role once, fastest first"),
    QT_TRANSLATE_NOOP("Engine", "%1 degree %2 makes groups of %3 ranks, which lie across those of the dense grid (%4)"),
    QT_TRANSLATE_NOOP("Engine", "framework %1 recomputes its layers alike, not %2"),
    QT_TRANSLATE_NOOP("Engine", "stages that are said one by one have degrees of their own: found %1 beside them"),
    QT_TRANSLATE_NOOP("Engine", "stages that are said one by one cannot have %1"),
    QT_TRANSLATE_NOOP("Engine", "context parallelism"),
    QT_TRANSLATE_NOOP("Engine", "virtual stages"),
    QT_TRANSLATE_NOOP("Engine", "sequence parallelism"),
    QT_TRANSLATE_NOOP("Engine", "stages %1 are %2 rank(s), but %3 has %4 GPU(s)"),
    QT_TRANSLATE_NOOP("Engine", "tensor-parallel degree %1 of one stage does not divide %2 of another"),
    QT_TRANSLATE_NOOP("Engine", "%1 is a layer list: its stages cannot have tp %2"),
    QT_TRANSLATE_NOOP(
        "Engine",
        "the first stage has tp %1, the last one tp %2: the embedding that they share is cut in as many parts on both"),
    QT_TRANSLATE_NOOP("Engine", "%1 micro-batch(es) cannot be dealt out to %2 replica(s) of a stage evenly"),
    QT_TRANSLATE_NOOP("Engine", "layer split %1 beside stages of %2 layer(s)"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 needs at least 2 virtual stages per rank, found %2"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 needs exactly 2 virtual stages per rank, found %2"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 needs groups of at least %2 micro-batch(es) (the pipeline ranks), found %3"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 with groups of %2 micro-batch(es) needs at least %3 micro-batch(es), found %4"),
    QT_TRANSLATE_NOOP("Engine",
                      "schedule %1 cannot end with a group of %2 micro-batch(es) on %3 pipeline rank(s) (%4 micro-batch(es) in "
                      "groups of %5)"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 has no groups of micro-batches, found groups of %2"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 has every stage on two ranks, ZeRO %2 cuts the gradients of one"),
    QT_TRANSLATE_NOOP("Engine",
                      "schedule %1 has every stage on two ranks, the norm of all gradients would count each of them twice"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 has every stage on two ranks, recompute %2 plans the runs of one"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 updates each stage by itself, ZeRO %2 gathers parameters once for a step"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 updates each stage by itself, the norm of all gradients is that of all stages"),
    QT_TRANSLATE_NOOP(
        "Engine",
        "schedule %1 updates each stage by itself, a tied embedding takes the gradients of the first and the last "
        "stage: the last would wait in each update until the gradient has passed all stages, and the pipeline would "
        "run empty"),
    QT_TRANSLATE_NOOP(
        "Engine", "schedule %1 updates each stage by itself, offloaded parameters and gradients come and go once for a step"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 updates each stage by itself, recompute %2 plans the runs of a step"),
    QT_TRANSLATE_NOOP("Engine", "pipeline rank %1 may keep no micro-batch in flight"),
    QT_TRANSLATE_NOOP("Engine", "schedule file has no lists"),
    QT_TRANSLATE_NOOP("Engine", "the schedules of framework %1 are its own, not those of a file"),
    QT_TRANSLATE_NOOP("Engine", "the lists of schedule file do not fit: %1"),
    QT_TRANSLATE_NOOP("Engine", "the lists of schedule file deadlock: %1"),
    QT_TRANSLATE_NOOP("Engine", "schedule file is what a file lists, not a rule"),
    QT_TRANSLATE_NOOP("Engine", "schedule looped-bfs needs a micro-batch for each of the %1 pipeline ranks, found %2"),
    QT_TRANSLATE_NOOP(
        "Engine",
        "schedule chimera needs an even number of pipeline ranks and a multiple of it in micro-batches, found %1 and %2"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 needs twice as many micro-batches as pipeline ranks, %2, found %3"),
    QT_TRANSLATE_NOOP("Engine", "schedule dualpipe needs even numbers of pipeline ranks and of micro-batches, found %1 and %2"),
    QT_TRANSLATE_NOOP("Engine",
                      "schedule pipedream-2bw needs groups of at least %1 micro-batches that divide the micro-batches of a "
                      "run, found groups of %2 of %3"),
    QT_TRANSLATE_NOOP(
        "Engine", "%1 micro-batch(es) on %2 pipeline rank(s) with %3 virtual stage(s) each are more than %4 million actions"),
    QT_TRANSLATE_NOOP("Engine", "%1 would take about %2 and %3 here"),
    QT_TRANSLATE_NOOP("Engine", "%1 micro-batch(es) on %2 pipeline rank(s): %3 actions"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 deadlocks"),
    QT_TRANSLATE_NOOP("Engine", "a pipeline needs at least one %1, found %2"),
    QT_TRANSLATE_NOOP("Engine", "%1 layer(s) do not divide evenly over %2 pipeline stage(s) (%3 / %4 = %5, remainder %6)"),
    QT_TRANSLATE_NOOP("Engine", "layer split %1 names %2 stage(s), the strategy has %3"),
    QT_TRANSLATE_NOOP("Engine", "layer split %1 adds up to %2 layer(s), the model has %3"),
    QT_TRANSLATE_NOOP("Engine", "stage %1 would hold no layer"),
    QT_TRANSLATE_NOOP("Engine", "%1 asks for %2 layer(s) of stage %3, which has %4"),
    QT_TRANSLATE_NOOP("Engine", "%1 names layer %2, the model has layers %3 to %4"),
    QT_TRANSLATE_NOOP("Engine", "%1 names %2 layer(s), the model has %3"),
    QT_TRANSLATE_NOOP("Engine", "%1 names %2 stage(s), the strategy has %3 on %4 rank(s)"),
    QT_TRANSLATE_NOOP("Engine", "%1 names %2 stage(s), the strategy has %3"),
    QT_TRANSLATE_NOOP("Engine", "recompute %1 is too little: the activations of pipeline rank %2 need at least %3"),
    QT_TRANSLATE_NOOP("Engine", "recompute %1 needs whole backwards, schedule %2 splits them"),
    QT_TRANSLATE_NOOP("Engine", "pipeline stage %1 would stand on %2 and on %3: the ranks of a stage need equal GPUs"),
    QT_TRANSLATE_NOOP("Engine", "%1 needs %2 (%3) and %4 for the framework; %5 has %6, of which %7 stay free: %8 too much"),
    QT_TRANSLATE_NOOP("Engine", "%1 needs %2 for the model and %3 for the framework; the limit is %4: %5 too much"),
    QT_TRANSLATE_NOOP("Engine", "the ranks of node %1 need %2 of host memory; it has %3"),
    QT_TRANSLATE_NOOP(
        "Engine",
        "%1 takes %2 of %3 per GPU by our prediction, %4 too much, although allocated memory fits: blocks of other "
        "sizes lie free, and PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would help"),
    QT_TRANSLATE_NOOP("Engine", "%1 takes %2 of %3 per GPU by our prediction, %4 too much"),
    QT_TRANSLATE_NOOP(
        "Engine",
        "%1 takes %2 of %3 per GPU by our prediction; measured runs took %4 to %5 of what was predicted, so that it "
        "fits with a probability of %6"),
    QT_TRANSLATE_NOOP("Engine", "%1 takes %2 of %3 per GPU by our prediction"),
    QT_TRANSLATE_NOOP("Engine", "policy %1 keeps %2 in host memory, --offload-%3 says %4"),
    QT_TRANSLATE_NOOP("Engine", "policy %1 is ZeRO %2, --zero says %3"),
    QT_TRANSLATE_NOOP("Engine", "stages with degrees of their own have no runtime policies"),
    QT_TRANSLATE_NOOP(
        "Engine", "policy %1 keeps parameters from a forward to its backward, but with %2 other micro-batches come in between"),
    QT_TRANSLATE_NOOP("Engine",
                      "policy %1: beside everything else the device leaves %2 elements to chunks of parameters; the largest "
                      "chunk has %3"),
    QT_TRANSLATE_NOOP("Engine",
                      "the norm for clipping is that of all gradients, which are not there when the first layer is updated"),
    QT_TRANSLATE_NOOP("Engine", "a dynamic loss scale looks at all gradients before the first layer is updated"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 has weight gradients of several micro-batches under way when a layer is updated"),
    QT_TRANSLATE_NOOP("Engine", "the ranks of node %1 need %2 of its NVMe drives; it has %3"),
    QT_TRANSLATE_NOOP("Engine", "the nodes of %1 (%2) have no NVMe drives"),
    QT_TRANSLATE_NOOP("Engine",
                      "schedule %1 reads activations in two halves of the backward, offloaded ones come back for one"),
    QT_TRANSLATE_NOOP(
        "Engine",
        "schedule %1 runs a forward beside a backward, and offloaded activations of both would pass through the same places"),
    QT_TRANSLATE_NOOP("Engine", "the schedule of --recompute %1 decides where activations lie"),
    QT_TRANSLATE_NOOP("Engine",
                      "a dynamic loss scale skips updates on the device; those of offloaded states cannot be skipped"),
    QT_TRANSLATE_NOOP("Engine", "schedule %1 computes weight gradients apart, when the layer's place has been given away"),
    QT_TRANSLATE_NOOP("Engine", "stages with degrees of their own keep everything on the device"),
    QT_TRANSLATE_NOOP("Engine", "%1 is one sum over all replicas, which ZeRO %2 in groups of %3 makes in two"),
    QT_TRANSLATE_NOOP("Engine", "one-bit with Adam sends the whole first moment, of which ZeRO %1 keeps a part"),
    QT_TRANSLATE_NOOP("Engine", "%1 chooses among the gradients of a whole step, ZeRO %2 sums each micro-batch by itself"),
    QT_TRANSLATE_NOOP("Engine", "%1 needs the gradients of all layers on the device until the update"),
    QT_TRANSLATE_NOOP("Engine", "%1 keeps what it left out, and a dynamic loss scale changes what it means"),
    QT_TRANSLATE_NOOP("Engine",
                      "one-bit with Adam sends the first moment and freezes the second, which needs updates before it"),
    QT_TRANSLATE_NOOP("Engine", "one-bit with Adam sends moments, of which the norm for clipping is not that of the gradients"),
    QT_TRANSLATE_NOOP("Engine", "one-bit with Adam reads the first moment on the device"),
    QT_TRANSLATE_NOOP("Engine", "%1 sends codes to all ranks alike, --algorithm %2 adds numbers on the way"),
    QT_TRANSLATE_NOOP("Engine",
                      "%1 sends whole buckets as they are ready, --sum-order priority parts of them in another order"),
    QT_TRANSLATE_NOOP("Engine", "%1 has no convolutions, whose inputs %2 sends to host memory"),
    QT_TRANSLATE_NOOP("Engine", "%1 moves values between operators, which --parts cuts"),
    QT_TRANSLATE_NOOP("Engine", "%1 chooses values, whatever their layer: --offload-layers has no say"),
    QT_TRANSLATE_NOOP("Engine", "policy %1 and %2 would each choose for the memory that the other leaves"),
    QT_TRANSLATE_NOOP("Engine", "--schedule best and %1 would each choose for the memory that the other leaves"),
    QT_TRANSLATE_NOOP("Engine", "policy %1 reaches an arena of %2, the budget is %3"),
    QT_TRANSLATE_NOOP("Engine", "--offload-activations free-time reaches an arena of %1, the budget is %2"),
    QT_TRANSLATE_NOOP("Engine", "%1 is for sums that every tensor-parallel rank has whole, not for parts of a sequence"),
    QT_TRANSLATE_NOOP("Engine", "%1 needs the attention of all queries on one rank, context parallelism splits them"),
    QT_TRANSLATE_NOOP("Engine", "%1 needs attention probabilities, which a flash kernel does not write"),
    QT_TRANSLATE_NOOP("Engine", "framework %1 sends gradients as they are, not %2"),
    QT_TRANSLATE_NOOP("Engine", "framework %1 sums activations as they are, not %2"),
    QT_TRANSLATE_NOOP("Engine", "compressed communication"),
    QT_TRANSLATE_NOOP("Engine", "a share above 0 and at most 1"),
    QT_TRANSLATE_NOOP("Engine", "a number of updates"),
    QT_TRANSLATE_NOOP("Engine", "2, 4 or 8 bits"),
    QT_TRANSLATE_NOOP("Engine", "4, 8 or 16 segments, and at least a level in each"),
    QT_TRANSLATE_NOOP("Engine", "offloading reaches %1, the budget is %2"),
    QT_TRANSLATE_NOOP("Engine", "sending tensors to host memory reaches %1, the budget is %2"),
    QT_TRANSLATE_NOOP("Engine", "the arenas of all %1 rank(s) together need %2; this machine has %3"),
    QT_TRANSLATE_NOOP("Engine", "no strategy fits: %1"),
    QT_TRANSLATE_NOOP("Engine", "no degrees divide the GPUs, the layers, the heads and the global batch"),
    QT_TRANSLATE_NOOP("Engine", "no schedule takes these degrees with this batch"),
    QT_TRANSLATE_NOOP("Engine", "--framework %1 can run none of the strategies: %2"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server and a worker are on 2 GPUs, %1 has one"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server and its workers need equal GPUs"),
    QT_TRANSLATE_NOOP("Engine", "framework %1 has no asynchronous server"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server has workers on one GPU each, not stages"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server has workers on one GPU each: found tp %1, cp %2, pp %3"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server has workers with all experts"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server keeps all optimizer states: there is nothing to shard"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server has workers that keep everything on their GPU"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server takes gradients as they are"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server updates before it knows all workers' gradients"),
    QT_TRANSLATE_NOOP("Engine", "%1 is a layer list: adapters are for linear layers of transformers"),
    QT_TRANSLATE_NOOP("Engine", "%1 has experts: adapters are for dense transformers"),
    QT_TRANSLATE_NOOP("Engine", "%1 has latent attention: adapters are for projections of queries, keys and values"),
    QT_TRANSLATE_NOOP("Engine", "%1 has attention sinks: adapters are for attention without them"),
    QT_TRANSLATE_NOOP("Engine", "%1 predicts several tokens: adapters are for models that predict one"),
    QT_TRANSLATE_NOOP("Engine", "stages with degrees of their own have no adapters"),
    QT_TRANSLATE_NOOP("Engine", "an asynchronous server sends all parameters, not those of adapters alone"),
    QT_TRANSLATE_NOOP("Engine", "framework %1 is known as it trains all parameters: what it allocates for adapters is not"),
    QT_TRANSLATE_NOOP("Engine", "policy %1 moves layers whose parameters are all trained, not adapters"),
    QT_TRANSLATE_NOOP("Engine", "%1 is a layer list: it has no sequences that could be packed"),
    QT_TRANSLATE_NOOP("Engine", "packed sequences of %1 tokens are longer than a row of %2"),
    QT_TRANSLATE_NOOP(
        "Engine", "%1 has learned positions or sees tokens on both sides: sequences are packed in causal models with others"),
    QT_TRANSLATE_NOOP("Engine", "%1 attends to a window or chunks: sequences are packed where it attends to all tokens before"),
    QT_TRANSLATE_NOOP("Engine", "packed sequences need one attention kernel"),
    QT_TRANSLATE_NOOP("Engine", "packed sequences are not cut by cp %1"),
    QT_TRANSLATE_NOOP("Engine", "dp %1 workers and a server need %2 GPUs, but %3 has %4"),
    QT_TRANSLATE_NOOP("Engine", "all %1 strategies need more memory in %2 than a GPU has, or cannot run in it"),
    QT_TRANSLATE_NOOP("Engine", "all %1 strategies need more memory than %2 % of a GPU"),
    QT_TRANSLATE_NOOP(
        "Engine", "parameters and optimizer states alone take %1 on each of %2 GPU(s), however they are cut; %3 are usable"),
    QT_TRANSLATE_NOOP("Engine", "for example: %1"),
    QT_TRANSLATE_NOOP("Engine",
                      "no partition fits: the layers need more memory than all GPUs have, with whole optimizer states"),
    QT_TRANSLATE_NOOP("Engine", "interrupted before a strategy was found"),
    QT_TRANSLATE_NOOP("Engine", "%1 %2 does not divide the %3 attention heads"),
    QT_TRANSLATE_NOOP("Engine", "%1 %2 does not divide the %3 key-value heads"),
    QT_TRANSLATE_NOOP("Engine", "%1 %2 does not divide the %3 columns of the feed-forward layer (ffn_hidden)"),
    QT_TRANSLATE_NOOP("Engine", "%1 does not divide the %2 tokens of a sequence"),
    QT_TRANSLATE_NOOP("Engine", "at most the model's %1 positions"),
    QT_TRANSLATE_NOOP("Engine", "at least %1"),
    QT_TRANSLATE_NOOP("Engine", "%1: a layer list is split by data, tensor and pipeline parallelism only"),
    QT_TRANSLATE_NOOP("Engine", "tp %1 cuts linear layers; %2 is a convolution"),
    QT_TRANSLATE_NOOP("Engine", "tp %1 cuts linear layers; %2 is a batch norm"),
    QT_TRANSLATE_NOOP("Engine", "tp %1 does not divide the %2 features of %3"),
    QT_TRANSLATE_NOOP("Engine", "tp %1 divides the features of no linear layer"),
    QT_TRANSLATE_NOOP("Engine", "an unknown key with value %1"),
    QT_TRANSLATE_NOOP("Engine", "a file or the name of a shipped model"),
    QT_TRANSLATE_NOOP("Engine", "a file or a shipped model"),
    QT_TRANSLATE_NOOP("Engine", "%1 does not divide the %2 %3"),
    QT_TRANSLATE_NOOP("Engine", "the model has no experts: --ep 1 and --etp 1"),
    QT_TRANSLATE_NOOP("Engine", "the model has no experts: --expert-capacity 0"),
    QT_TRANSLATE_NOOP("Engine", "a mixture of experts needs products without biases beside it, and norms before it"),
    QT_TRANSLATE_NOOP("Engine", "ep %1 does not divide the %2 experts of a layer"),
    QT_TRANSLATE_NOOP("Engine", "etp %1 does not divide the %2 columns of an expert"),
    QT_TRANSLATE_NOOP("Engine", "tp %1 does not divide the %2 columns of the shared experts"),
    QT_TRANSLATE_NOOP("Engine", "tensor-parallel ranks would send the same tokens to the experts: --sequence-parallel"),
    QT_TRANSLATE_NOOP("Engine", "biases of experts would be added by each of etp %1 ranks: --etp 1"),
    QT_TRANSLATE_NOOP("Engine", "a softmax over one chosen expert is always 1, so the router would not learn"),
    QT_TRANSLATE_NOOP("Engine", "multi-token prediction is for decoders with norms before their blocks and rotary positions"),
    QT_TRANSLATE_NOOP("Engine", "%1 has no experts that ep %2 x etp %3 could share"),
    QT_TRANSLATE_NOOP("Engine",
                      "balanced, equal, worst, gini:0.15 (above 0, below 1), zipf:0.5 (above 0, at most 10), a number of at "
                      "least 1, or file:F "
                      "with measured loads"),
    QT_TRANSLATE_NOOP("Engine", "%1 has no experts whose capacity could be limited"),
    QT_TRANSLATE_NOOP("Engine", "ep %1 x etp %2 does not divide tp x cp x dp = %3"),
    QT_TRANSLATE_NOOP("Engine", "stages with degrees of their own do not share experts"),
    QT_TRANSLATE_NOOP("Engine", "ZeRO groups below dp do not say which replicas of an expert they hold"),
    QT_TRANSLATE_NOOP("Engine", "the states of experts stay on the device"),
    QT_TRANSLATE_NOOP("Engine", "the measured loads are of %1 experts, a layer of the model has %2"),
    QT_TRANSLATE_NOOP("Engine", "the measured loads are of %1 layers, the model has %2 with experts"),
    QT_TRANSLATE_NOOP("Engine", "--expert-node-ranks %1 does not divide ep %2"),
    QT_TRANSLATE_NOOP("Engine", "the ranks of an expert group on one node do not have consecutive experts with this placement"),
    QT_TRANSLATE_NOOP("Engine", "%1 sends rows of tokens in codes, --expert-dispatcher %2 gathers tokens"),
    QT_TRANSLATE_NOOP(
        "Engine", "codes of rows are whole 32-bit words, so that --compress-dispatch needs a hidden size that 32 divides: %1"),
    QT_TRANSLATE_NOOP("Engine", "tokens that chose an expert: a number of at least 0"),
    QT_TRANSLATE_NOOP("Engine", "at least one expert that tokens chose"),
    QT_TRANSLATE_NOOP("Engine", "the loads of at least one layer"),
    QT_TRANSLATE_NOOP(
        "Engine", "windows, chunks, sinks, capped scores and latent attention need one attention kernel: --attention flash"),
    QT_TRANSLATE_NOOP("Engine", "windows and chunks of attention need a causal model"),
    QT_TRANSLATE_NOOP("Engine", "norms over all query heads at once need all of them on each rank: --tp 1"),
    QT_TRANSLATE_NOOP("Engine",
                      "tensor-parallel ranks sum the gradients of norms of queries and keys only with --sequence-parallel"),
    QT_TRANSLATE_NOOP("Engine", "attention sinks need all keys of a head on each rank: --context all-gather"),
    QT_TRANSLATE_NOOP("Engine",
                      "latent attention does not deal out heads over context-parallel ranks: --context all-gather or ring"),
    QT_TRANSLATE_NOOP("Engine", "norms and multipliers behind attention and MLP need products without biases before them"),
    QT_TRANSLATE_NOOP("Engine", "off, because the pooler reads the first token, which lies on one rank only"),
    QT_TRANSLATE_NOOP("Engine", "1, because the pooler reads the first token, which lies on one rank only"),
    QT_TRANSLATE_NOOP("Engine", "degrees whose product divides %1"),
    QT_TRANSLATE_NOOP("Engine", "a larger cluster"),
    QT_TRANSLATE_NOOP("Engine", "a smaller --tp, --cp or --pp"),
    QT_TRANSLATE_NOOP("Engine", "fewer --fix"),
    QT_TRANSLATE_NOOP("Engine", "another --global-batch"),
    QT_TRANSLATE_NOOP("Engine", "a larger --global-batch"),
    QT_TRANSLATE_NOOP("Engine", "a smaller --micro-batch"),
    QT_TRANSLATE_NOOP("Engine", "leave out %1"),
    QT_TRANSLATE_NOOP("Engine", "fewer replicas or tensor ranks"),
    QT_TRANSLATE_NOOP("Engine", "degrees of which each divides the next larger one, such as %1"),
    QT_TRANSLATE_NOOP("Engine", "tp 1 in every stage"),
    QT_TRANSLATE_NOOP("Engine", "the same tp on the first and the last stage"),
    QT_TRANSLATE_NOOP("Engine", "a global batch that is a multiple of %1"),
    QT_TRANSLATE_NOOP("Engine", "%1 or %2 micro-batch(es)"),
    QT_TRANSLATE_NOOP("Engine", "a number for each of the %1 rank(s)"),
    QT_TRANSLATE_NOOP("Engine", "%1 so that every stage has nodes of one kind"),
    QT_TRANSLATE_NOOP("Engine", "%1 with role last"),
    QT_TRANSLATE_NOOP("Engine", "a larger --memory-limit"),
    QT_TRANSLATE_NOOP("Engine", "a plan that needs less memory"),
    QT_TRANSLATE_NOOP("Engine", "a smaller model or batch"),
    QT_TRANSLATE_NOOP("Engine", "fewer ranks"),
    QT_TRANSLATE_NOOP("Engine", "%1: %2 on stage %3 of %4"),
};

// Each with what tells whether a sentence is of its kind.
std::vector<std::pair<const char*, QRegularExpression>> patterns() {
  static const QRegularExpression place(QStringLiteral("%[0-9]"));
  std::vector<std::pair<const char*, QRegularExpression>> all;
  for (const char* sentence : kSentences) {
    QStringList parts = QString::fromUtf8(sentence).split(place);
    for (QString& part : parts) part = QRegularExpression::escape(part).replace("\\(s\\)", "s?").replace("\\(es\\)", "(?:es)?");
    all.emplace_back(sentence,
                     QRegularExpression("^" + parts.join("(.+?)") + "$", QRegularExpression::DotMatchesEverythingOption));
  }
  return all;
}

}  // namespace

QString without_force(const QString& sentence) {
  return sentence.endsWith(", or --force") ? sentence.section("; ", 0, -2) : sentence;
}

QString engine_words(const QString& sentence) {
  static const auto all = patterns();
  for (const auto& [source, pattern] : all) {
    const auto found = pattern.match(sentence);
    if (!found.hasMatch()) continue;
    QString text = QCoreApplication::translate("Engine", source);
    if (text == QLatin1String(source)) return sentence;              // in English it says so already
    for (int part = 1; part <= found.lastCapturedIndex(); ++part) {  // one by one: a part may have a % of its own
      const QString words = engine_words(found.captured(part));
      text.replace(QString("%%1").arg(part), QString(words).replace('%', QChar(0xe000)));
    }
    return text.replace(QChar(0xe000), '%');
  }
  return sentence;
}

}  // namespace foreshard
