// A mixture of experts: the choice of experts, and the rows that go to them and come back.
// Reference: exec/host/host_route.cpp and exec/host/host_experts.cpp.
#pragma once

#include "exec/cuda/expert_args.h"
#include "exec/cuda/kernels/embedding.h"
#include "exec/cuda/kernels/loss_scale.h"

namespace foreshard::gpu {

// ---- the router -------------------------------------------------------------------------------------------------------------------

// Whether expert `at` with key a is preferred to expert `than` with key b: the larger key, of equal keys the lower expert.
GPU_FUNCTION bool is_preferred(float a, int at, float b, int than) { return a > b || (a == b && at < than); }

// The sum of the `count` largest of keys[first, last).
GPU_FUNCTION float sum_of_best(GPU_SHARED_VIEW(float, kMostExperts) keys, int first, int last, int count) {
  float sum = 0, before = INFINITY;
  int at = -1;
  for (int n = 0; n < count && n < last - first; ++n) {
    int best = -1;
    for (int i = first; i < last; ++i) {
      const bool left = at < 0 || is_preferred(before, at, keys[i], i);
      if (left && (best < 0 || is_preferred(keys[i], i, keys[best], best))) best = i;
    }
    at = best, before = keys[best], sum += before;
  }
  return sum;
}

// The softmax of `count` logits of a token into p; returns the log of the sum of their exponentials. No barrier follows: a thread may read
// the elements that it has written itself.
GPU_FUNCTION float softmax_into(const View& logits, std::int64_t from, int count, GPU_SHARED_VIEW(float, kMostExperts) p,
                                GPU_SHARED_VIEW(float, kMostWarps) parts) {
  float largest = -INFINITY, sum = 0;
  for (int i = thread(); i < count; i += threads()) largest = fmaxf(largest, load(logits, from + i));
  largest = block_fold(largest, true, parts);
  for (int i = thread(); i < count; i += threads()) sum += expf(load(logits, from + i) - largest);
  sum = block_fold(sum, false, parts);
  for (int i = thread(); i < count; i += threads()) p[i] = expf(load(logits, from + i) - largest) / sum;
  return largest + logf(sum);
}

GPU_FUNCTION float score_of(const RouteArgs& a, std::int64_t at) {
  const float x = load(a.logits, at);
  return a.scoring == Scoring::Sigmoid ? 1.0f / (1.0f + expf(-x)) : x;
}

// As softmax_into: no barrier follows.
GPU_FUNCTION void scores_into(const RouteArgs& a, GPU_SHARED_VIEW(float, kMostExperts) scores,
                              GPU_SHARED_VIEW(float, kMostWarps) parts) {
  const std::int64_t from = block() * a.experts_of_layer;
  if (a.scoring == Scoring::Softmax) {
    softmax_into(a.logits, from, a.experts_of_layer, scores, parts);
    return;
  }
  for (int i = thread(); i < a.experts_of_layer; i += threads()) scores[i] = score_of(a, from + i);
}

// The weight of the j-th chosen expert. `picked`: the scores of all chosen experts.
GPU_FUNCTION float weight_of(const RouteArgs& a, GPU_SHARED_VIEW(float, kMostChosen) picked, int j) {
  float sum = 0, largest = picked[0];
  for (int i = 1; i < a.chosen; ++i) largest = fmaxf(largest, picked[i]);
  if (a.scoring == Scoring::SoftmaxOfChosen) {
    for (int i = 0; i < a.chosen; ++i) sum += expf(picked[i] - largest);
    return expf(picked[j] - largest) / sum * a.scale;
  }
  if (!a.renormalised) return picked[j] * a.scale;
  sum = 1e-20f;
  for (int i = 0; i < a.chosen; ++i) sum += picked[i];
  return picked[j] / sum * a.scale;
}

// A thread block per token. An expert is chosen if fewer than k are preferred to it; E^2 comparisons per token. Reads 4 bytes per logit and
// writes 12 per choice in fp32; bound by the comparisons from about 256 experts on.
GPU_KERNEL route_forward(const RouteArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  GPU_SHARED(float, scores, kMostExperts);
  GPU_SHARED(float, keys, kMostExperts);
  GPU_SHARED(float, of_group, kMostGroups);
  GPU_SHARED(float, picked, kMostChosen);
  const int experts = a.experts_of_layer, each = experts / a.groups;
  scores_into(a, scores, parts);
  for (int i = thread(); i < experts; i += threads()) {
    const float score = scores[i];
    keys[i] = score + (a.biases.data ? load(a.biases, i) : 0.0f);
  }
  GPU_BARRIER();
  for (int g = thread(); a.groups > 1 && g < a.groups; g += threads())
    of_group[g] = sum_of_best(keys, g * each, (g + 1) * each, a.best_of_group);
  GPU_BARRIER();
  for (int i = thread(); a.groups > 1 && i < experts; i += threads()) {
    const int mine = i / each;
    int better = 0;
    for (int g = 0; g < a.groups; ++g) better += is_preferred(of_group[g], g, of_group[mine], mine) ? 1 : 0;
    if (better >= a.chosen_groups) keys[i] = -INFINITY;
  }
  GPU_BARRIER();
  for (int i = thread(); i < experts; i += threads()) {
    const float key = keys[i];
    int better = 0;
    for (int other = 0; other < experts; ++other) better += is_preferred(keys[other], other, key, i) ? 1 : 0;
    if (better >= a.chosen) continue;
    store_integer(a.experts, block() * a.chosen + better, i);
    const float score = scores[i];
    picked[better] = score;
  }
  GPU_BARRIER();
  for (int j = thread(); j < a.chosen; j += threads()) store(a.weights, block() * a.chosen + j, weight_of(a, picked, j));
}

// A thread block per expert counts its choices. Counts are exact in fp32 up to 2^24. Reads 8 bytes per choice and expert; bound by memory
// (L2).
GPU_KERNEL tally_choices(const TallyArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  float count = 0;
  for (std::int64_t i = thread(); i < a.choices; i += threads()) count += load_integer(a.experts, i) == block() ? 1.0f : 0.0f;
  count = block_fold(count, false, parts);
  if (thread() > 0) return;
  store(a.loads, block(), count);
  if (a.totals.data) store(a.totals, block(), load(a.before, block()) + count);
}

// Gradient of the score (of SoftmaxOfChosen: of the logit) of expert i from those of the weights.
GPU_FUNCTION float chosen_gradient(const RouteArgs& a, int i, GPU_SHARED_VIEW(float, kMostExperts) scores) {
  const std::int64_t first = block() * a.chosen;
  int j = -1;
  float dot = 0, sum = 0, largest = -INFINITY;
  for (int n = 0; n < a.chosen; ++n) {
    const auto expert = static_cast<int>(load_integer(a.experts, first + n));
    if (expert == i) j = n;
    largest = fmaxf(largest, scores[expert]);
  }
  if (j < 0) return 0;
  const bool inner = a.scoring == Scoring::SoftmaxOfChosen;
  for (int n = 0; n < a.chosen; ++n) {
    const float score = scores[load_integer(a.experts, first + n)], part = inner ? expf(score - largest) : score;
    sum += part;
    dot += load(a.dweights, first + n) * part;
  }
  const float dy = load(a.dweights, first + j);
  if (inner) return a.scale * expf(scores[i] - largest) / sum * (dy - dot / sum);
  sum += 1e-20f;
  return a.renormalised ? a.scale * (dy - dot / sum) / sum : a.scale * dy;
}

// A thread block per token. Reads 8 bytes per logit and load, writes 4 in fp32; bound by memory.
GPU_KERNEL route_backward(const RouteArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  GPU_SHARED(float, scores, kMostExperts);
  GPU_SHARED(float, gradient, kMostExperts);
  GPU_SHARED(float, p, kMostExperts);
  const int experts = a.experts_of_layer;
  const std::int64_t from = block() * experts;
  const float scaled = scale_of_backward(a.state), balance = a.balance * scaled;
  scores_into(a, scores, parts);
  const float log_sum = softmax_into(a.logits, from, experts, p, parts);
  const bool sigmoids = a.scoring == Scoring::Sigmoid;
  float sum = 0, dot = 0;
  for (int i = thread(); i < experts; i += threads()) {
    const float load_i = balance * load(a.loads, i), own = chosen_gradient(a, i, scores), score = scores[i], share = p[i];
    gradient[i] = a.scoring == Scoring::Softmax ? own + load_i : own;
    if (sigmoids) sum += score, dot += load_i * score;
    if (!sigmoids) dot += (a.scoring == Scoring::Softmax ? own + load_i : load_i) * share;
  }
  sum = block_fold(sum, false, parts);
  dot = block_fold(dot, false, parts);
  for (int i = thread(); i < experts; i += threads()) {
    const float load_i = balance * load(a.loads, i), own = gradient[i], score = scores[i], share = p[i];
    float out = 0;
    if (sigmoids)
      out = (own + (load_i - dot / sum) / sum) * score * (1.0f - score);
    else
      out = a.scoring == Scoring::Softmax ? share * (own - dot) : own + share * (load_i - dot);
    if (a.z > 0) out += 2.0f * a.z * scaled * log_sum * share;
    store(a.dlogits, from + i, old_value(a.accumulate, a.dlogits, from + i) + out);
  }
}

// A thread block per router. Accesses 12 bytes per expert; bound by the time of a launch.
GPU_KERNEL balance_experts(const BalanceArgs a) {
  const std::int64_t from = block() * a.experts;
  double sum = 0;
  for (int i = 0; i < a.experts; ++i) sum += load(a.counts, from + i);
  for (int i = thread(); i < a.experts; i += threads()) {
    const double times = static_cast<double>(load(a.counts, from + i)) * a.experts;
    const float by = times < sum ? a.speed : times > sum ? -a.speed : 0.0f;
    store(a.biases, from + i, load(a.before, from + i) + by);
  }
}

// ---- rows of choices ----------------------------------------------------------------------------------------------------------------

// Index of an expert when experts are sorted by rank.
GPU_FUNCTION std::int64_t place_of(const PlacesArgs& a, std::int64_t expert) {
  return a.dealt && expert >= 0 ? expert % a.ranks * (a.experts_of_layer / a.ranks) + expert / a.ranks : expert;
}

// A thread block per expert and source counts the choices of the expert. Reads 8 bytes per choice and expert; bound by memory (L2).
GPU_KERNEL count_choices(const PlacesArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  float count = 0;
  for (std::int64_t i = thread(); i < a.choices; i += threads())
    count += place_of(a, load_integer(a.experts, block_y() * a.choices + i)) == block() ? 1.0f : 0.0f;
  count = block_fold(count, false, parts);
  if (thread() == 0) store_integer(a.wanted, block_y() * a.experts_of_layer + block(), static_cast<std::int64_t>(count));
}

// One thread per source: the rows that each expert gets: at most its capacity, and at most the room for all experts of a rank together.
// Accesses 32 bytes per expert; bound by latency.
GPU_KERNEL divide_room(const PlacesArgs a) {
  if (thread() > 0) return;
  const int each = a.experts_of_layer / a.ranks;
  const std::int64_t from = block() * a.experts_of_layer;
  std::int64_t left = 0, next = 0;
  for (int e = 0; e < a.experts_of_layer; ++e) {
    const int rank = e / each;
    if (e % each == 0) left = a.room, next = block() * (a.own >= 0 ? a.room : 0) + (a.own >= 0 ? 0 : rank * a.room);
    std::int64_t count = load_integer(a.wanted, from + e);
    if (a.capacity > 0 && count > a.capacity) count = a.capacity;
    if (count > left) count = left;
    left -= count;
    const bool here = a.own < 0 || rank == a.own;
    store_integer(a.first, from + e, next);
    store_integer(a.end, from + e, next + (here ? count : 0));
    next += count;
    if (here) store_integer(a.counts, a.own < 0 ? from + e : block() * each + e % each, count);
  }
}

// A thread block per expert and source goes through the choices in order. Reads 8 bytes per choice and expert; bound by memory (L2).
GPU_KERNEL place_choices(const PlacesArgs a) {
  GPU_SHARED(int, counts, 2 * kMostWarps);
  const std::int64_t from = block_y() * a.choices, at = block_y() * a.experts_of_layer + block();
  std::int64_t next = load_integer(a.first, at);
  const std::int64_t end = load_integer(a.end, at);
  int turn = 0;
  for (std::int64_t first = 0; first < a.choices; first += threads()) {
    const std::int64_t i = first + thread();
    const std::int64_t expert = i < a.choices ? place_of(a, load_integer(a.experts, from + i)) : -2;
    const Hits hits = count_hits(expert == block(), turn, counts);
    turn ^= 1;
    const std::int64_t row = next + hits.before;
    if (expert == block()) store_integer(a.places, from + i, row < end ? row : -1);
    if (expert == -1 && block() == 0) store_integer(a.places, from + i, -1);
    next += hits.all;
  }
}

// A thread block per choice writes its row. Reads 2 bytes and writes 2 per element in bf16; bound by memory.
GPU_KERNEL spread_rows(const ChoiceRowsArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const std::int64_t i = block(), place = load_integer(a.places, i), token = i / a.chosen * a.h;
  float dot = 0;
  if (place >= 0) {
    const float weight = a.weights.data ? load(a.weights, i) : 1.0f;
    for (std::int64_t c = thread(); c < a.h; c += threads()) {
      const float x = load(a.from, token + c);
      if (a.dots.data) dot += x * load(a.other, place * a.h + c);
      store(a.to, place * a.h + c, old_value(a.accumulate, a.to, place * a.h + c) + weight * x);
    }
  }
  if (!a.dots.data) return;
  dot = block_fold(dot, false, parts);
  if (thread() == 0) store(a.dots, i, dot);
}

// A thread block per token adds up the rows of its choices, in their order. Reads 2 k bytes and writes 2 per element in bf16; bound by
// memory.
GPU_KERNEL collect_rows(const ChoiceRowsArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const std::int64_t token = block() * a.h, first = block() * a.chosen;
  for (std::int64_t c = thread(); c < a.h; c += threads()) {
    float sum = old_value(a.accumulate, a.to, token + c);
    for (int j = 0; j < a.chosen; ++j) {
      const std::int64_t place = load_integer(a.places, first + j);
      if (place >= 0) sum += (a.weights.data ? load(a.weights, first + j) : 1.0f) * load(a.from, place * a.h + c);
    }
    store(a.to, token + c, sum);
  }
  for (int j = 0; a.dots.data && j < a.chosen; ++j) {
    const std::int64_t place = load_integer(a.places, first + j);
    float dot = 0;
    for (std::int64_t c = thread(); place >= 0 && c < a.h; c += threads())
      dot += load(a.from, place * a.h + c) * load(a.other, token + c);
    dot = block_fold(dot, false, parts);
    if (thread() == 0) store(a.dots, first + j, dot);
  }
}

// ---- tokens that go once to each part of the group -----------------------------------------------------------------------------------

// The rank of an expert, and its index among the experts of its part, which are assigned to the ranks of the part as all experts are to the
// group.
GPU_FUNCTION int rank_of(const SendArgs& a, int expert) {
  return a.dealt ? expert % a.ranks : expert / (a.experts_of_layer / a.ranks);
}
GPU_FUNCTION int number_in_part(const SendArgs& a, int expert) {
  const int ranks = a.ranks / a.parts;
  return a.dealt ? expert / a.ranks * ranks + rank_of(a, expert) % ranks : expert % (a.experts_of_layer / a.parts);
}

// A thread block per expert goes through the choices in order and keeps the first `capacity`. Reads 8 bytes per choice and expert; bound by
// memory (L2).
GPU_KERNEL keep_choices(const SendArgs a) {
  GPU_SHARED(int, counts, 2 * kMostWarps);
  std::int64_t before = 0;
  int turn = 0;
  for (std::int64_t first = 0; first < a.tokens * a.chosen; first += threads()) {
    const std::int64_t i = first + thread();
    const bool mine = i < a.tokens * a.chosen && load_integer(a.experts, i) == block();
    const Hits hits = count_hits(mine, turn, counts);
    turn ^= 1;
    if (mine) store(a.kept, i, before + hits.before < a.capacity ? 1.0f : 0.0f);
    before += hits.all;
  }
}

// The expert of choice j of a token if it belongs to this block's part and the choice is kept, else -1.
GPU_FUNCTION int choice_here(const SendArgs& a, std::int64_t token, int j) {
  const std::int64_t i = token * a.chosen + j;
  const auto expert = static_cast<int>(load_integer(a.experts, i));
  if (rank_of(a, expert) / (a.ranks / a.parts) != block()) return -1;
  return a.kept.data && !load_flag(a.kept, i) ? -1 : expert;
}

// A thread block per part goes through the tokens in order; those with a choice in the part get the next row. Reads 8 bytes per choice and
// part and writes 12 per row and choice; bound by latency.
GPU_KERNEL send_tokens(const SendArgs a) {
  GPU_SHARED(int, counts, 2 * kMostWarps);
  const std::int64_t begin = block() * a.room;
  std::int64_t next = 0;
  int turn = 0;
  for (std::int64_t first = 0; first < a.tokens; first += threads()) {
    const std::int64_t token = first + thread();
    bool sent = false;
    for (int j = 0; token < a.tokens && j < a.chosen; ++j) sent = sent || choice_here(a, token, j) >= 0;
    const Hits hits = count_hits(sent, turn, counts);
    turn ^= 1;
    const std::int64_t row = next + hits.before;
    const bool here = sent && row < a.room;
    next += hits.all;
    if (token < a.tokens) store_integer(a.places, token * a.parts + block(), here ? begin + row : -1);
    for (int j = 0; here && j < a.chosen; ++j) {
      const int expert = choice_here(a, token, j);
      const std::int64_t to = (begin + row) * a.chosen + j;
      store_integer(a.sent_experts, to, expert >= 0 ? number_in_part(a, expert) : -1);
      store(a.sent_weights, to, expert >= 0 ? load(a.weights, token * a.chosen + j) : 0.0f);
    }
  }
  for (std::int64_t i = next * a.chosen + thread(); i < a.room * a.chosen; i += threads()) {  // rows of no token
    store_integer(a.sent_experts, begin * a.chosen + i, -1);
    store(a.sent_weights, begin * a.chosen + i, 0.0f);
  }
}

}  // namespace foreshard::gpu
