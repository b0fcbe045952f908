// The experts that each token chooses, with their weights, and tokens that go once to each part of the expert group (core/op/experts.h).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "exec/host/host_experts.h"

namespace foreshard::host {

SentTokens sent_tokens(const Form& form) {
  const auto &of = form.dims(0, 4), &to = form.dims(1, 2);
  const SentTokens s = {form.as<ops::SendOnce>(), of[0], of[1], of[2], of[3], to[0], to[1]};
  if (s.op.ranks < 1 || s.op.ranks % s.parts != 0 || s.experts % s.op.ranks != 0)
    form.refuse(std::to_string(s.experts) + " experts on " + std::to_string(s.op.ranks) + " ranks of " +
                    std::to_string(s.parts) + " parts",
                "equally many on each rank, and of ranks in each part");
  return s;
}

namespace {

struct Choice {
  ops::Route op = {};
  std::int64_t tokens = 0, experts = 0;
};

template <class T>
void softmax(const T* x, std::int64_t count, T* y) {
  const T largest = *std::max_element(x, x + count);
  T sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += y[i] = std::exp(x[i] - largest);
  for (std::int64_t i = 0; i < count; ++i) y[i] /= sum;
}

// What experts are chosen by, and what the weights are made of.
template <class T>
void scores_of(const Choice& c, const T* logits, T* scores) {
  switch (c.op.score) {
    case ops::Route::Score::Softmax: return softmax(logits, c.experts, scores);
    case ops::Route::Score::SoftmaxOfChosen: std::copy_n(logits, c.experts, scores); return;
    case ops::Route::Score::Sigmoid:
      for (std::int64_t i = 0; i < c.experts; ++i) scores[i] = T(1) / (T(1) + std::exp(-logits[i]));
  }
}

// The place of the largest of those that are not taken; of equal ones the first.
template <class T>
std::int64_t best(const T* x, const T* taken, std::int64_t first, std::int64_t last) {
  std::int64_t at = -1;
  for (std::int64_t i = first; i < last; ++i)
    if (taken[i] == T(0) && (at < 0 || x[i] > x[at])) at = i;
  return at;
}

// By `scores` with the correction biases. `taken` [E] and `groups` [groups] are scratch.
template <class T>
void choose(const Choice& c, const T* scores, T* taken, T* groups, std::int64_t* chosen) {
  std::fill_n(taken, c.experts, T(0));
  if (c.op.groups > 1) {
    const std::int64_t each = c.experts / c.op.groups;
    for (std::int64_t g = 0; g < c.op.groups; ++g) {
      groups[g] = 0;
      for (std::int64_t i = 0; i < std::min(c.op.best_of_group, each); ++i) {
        const std::int64_t at = best(scores, taken, g * each, (g + 1) * each);
        groups[g] += scores[at], taken[at] = T(1);
      }
    }
    std::fill_n(taken, c.experts, T(1));  // of the groups that are not chosen it stays so
    for (std::int64_t n = 0; n < c.op.chosen_groups; ++n) {
      std::int64_t at = -1;
      for (std::int64_t g = 0; g < c.op.groups; ++g)
        if (taken[g * each] == T(1) && (at < 0 || groups[g] > groups[at])) at = g;
      std::fill_n(taken + at * each, each, T(0));
    }
  }
  for (std::int64_t j = 0; j < c.op.chosen; ++j) {
    chosen[j] = best(scores, taken, 0, c.experts);
    taken[chosen[j]] = T(1);
  }
}

template <class T>
void weigh(const Choice& c, const T* scores, const std::int64_t* chosen, T* weights) {
  for (std::int64_t j = 0; j < c.op.chosen; ++j) weights[j] = scores[chosen[j]];
  if (c.op.score == ops::Route::Score::SoftmaxOfChosen) {
    softmax(weights, c.op.chosen, weights);
  } else if (c.op.renormalised) {
    T sum = T(1e-20);
    for (std::int64_t j = 0; j < c.op.chosen; ++j) sum += weights[j];
    for (std::int64_t j = 0; j < c.op.chosen; ++j) weights[j] /= sum;
  }
  for (std::int64_t j = 0; j < c.op.chosen; ++j) weights[j] *= static_cast<T>(c.op.scale);
}

template <class T>
Kernel<T> route_forward(const Form& form, const Choice& c) {
  const std::int64_t k = c.op.chosen;
  const bool biased = form.reads.size() > 1, counts = form.writes.size() > 3;
  std::vector<std::int64_t> reads = {c.tokens * c.experts}, writes = {c.tokens * k, c.tokens * k, c.experts};
  if (biased) reads.push_back(c.experts);
  if (counts) reads.push_back(c.experts), writes.push_back(c.experts);
  form.expect(reads, writes);
  const auto run = [=](const Call<T>& call) {
    T *scores = call.scratch, *biased_scores = scores + c.experts, *taken = biased_scores + c.experts,
      *groups = taken + c.experts;
    T* loads = call.out[2];
    std::int64_t* chosen = integers_of(call.writes[1]);
    std::fill_n(loads, c.experts, T(0));
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      scores_of(c, call.in[0] + t * c.experts, scores);
      for (std::int64_t i = 0; i < c.experts; ++i) biased_scores[i] = scores[i] + (biased ? call.in[1][i] : T(0));
      choose(c, biased_scores, taken, groups, chosen + t * k);
      weigh(c, scores, chosen + t * k, call.out[0] + t * k);
      for (std::int64_t j = 0; j < k; ++j) loads[chosen[t * k + j]] += T(1);
    }
    for (std::int64_t i = 0; counts && i < c.experts; ++i) call.out[3][i] = call.in[2][i] + loads[i];
  };
  return {.run = run, .scratch = 3 * c.experts + c.op.groups};
}

// Gradients of the scores of the chosen from those of their weights; of SoftmaxOfChosen, of their logits.
template <class T>
void weights_backward(const Choice& c, const T* scores, const std::int64_t* chosen, const T* dy, T* inner, T* gradient) {
  const std::int64_t k = c.op.chosen;
  const T scale = static_cast<T>(c.op.scale);
  T dot = 0;
  if (c.op.score == ops::Route::Score::SoftmaxOfChosen) {
    for (std::int64_t j = 0; j < k; ++j) inner[j] = scores[chosen[j]];
    softmax(inner, k, inner);
    for (std::int64_t j = 0; j < k; ++j) dot += dy[j] * inner[j];
    for (std::int64_t j = 0; j < k; ++j) gradient[chosen[j]] += scale * inner[j] * (dy[j] - dot);
    return;
  }
  T sum = T(1e-20);
  for (std::int64_t j = 0; j < k; ++j) sum += scores[chosen[j]], dot += dy[j] * scores[chosen[j]];
  for (std::int64_t j = 0; j < k; ++j)
    gradient[chosen[j]] += c.op.renormalised ? scale * (dy[j] - dot / sum) / sum : scale * dy[j];
}

// gradient[i] becomes that of logit i; before it is that of a softmax over all.
template <class T>
void softmax_backward(const T* p, std::int64_t count, T* gradient) {
  T dot = 0;
  for (std::int64_t i = 0; i < count; ++i) dot += gradient[i] * p[i];
  for (std::int64_t i = 0; i < count; ++i) gradient[i] = p[i] * (gradient[i] - dot);
}

// Adds the gradient of factor (log sum exp x)^2: 2 factor log sum exp x times the softmax. `p` is scratch.
template <class T>
void add_z_loss(const T* x, std::int64_t count, T factor, T* p, T* gradient) {
  const T largest = *std::max_element(x, x + count);
  T sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += p[i] = std::exp(x[i] - largest);
  const T scale = 2 * factor * (largest + std::log(sum)) / sum;
  for (std::int64_t i = 0; i < count; ++i) gradient[i] += scale * p[i];
}

// reads: gradient of the weights, logits, experts, loads
template <class T>
Kernel<T> route_backward(const Form& form, const Choice& c) {
  const std::int64_t k = c.op.chosen, experts = c.experts;
  form.expect({c.tokens * k, c.tokens * experts, c.tokens * k, experts}, {c.tokens * experts});
  const bool add = form.what.accumulate;
  const auto run = [=](const Call<T>& call) {
    T *scores = call.scratch, *gradient = scores + experts, *balance = gradient + experts, *inner = balance + experts;
    const std::int64_t* chosen = integers(call.reads[2]);
    const auto tokens = static_cast<double>(c.tokens * c.op.ranks);
    const double each = loss_weight(call.arguments, c.tokens, static_cast<int>(c.op.ranks)) * call.arguments.loss_scale;
    const T coefficient =
        static_cast<T>(c.op.auxiliary * static_cast<double>(experts) / (static_cast<double>(k) * tokens) * each);
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      const T* logits = call.in[1] + t * experts;
      scores_of(c, logits, scores);
      std::fill_n(gradient, experts, T(0));
      weights_backward(c, scores, chosen + t * k, call.in[0] + t * k, inner, gradient);
      for (std::int64_t i = 0; i < experts; ++i) balance[i] = coefficient * call.in[3][i];
      if (c.op.score == ops::Route::Score::Softmax) {
        for (std::int64_t i = 0; i < experts; ++i) gradient[i] += balance[i];
        softmax_backward(scores, experts, gradient);
      } else if (c.op.score == ops::Route::Score::SoftmaxOfChosen) {
        softmax(logits, experts, scores);
        softmax_backward(scores, experts, balance);
        for (std::int64_t i = 0; i < experts; ++i) gradient[i] += balance[i];
      } else {
        T sum = 0, dot = 0;
        for (std::int64_t i = 0; i < experts; ++i) sum += scores[i], dot += balance[i] * scores[i];
        for (std::int64_t i = 0; i < experts; ++i)
          gradient[i] = (gradient[i] + (balance[i] - dot / sum) / sum) * scores[i] * (T(1) - scores[i]);
      }
      if (c.op.z_loss > 0) add_z_loss(logits, experts, static_cast<T>(c.op.z_loss * each), scores, gradient);
      T* dx = call.out[0] + t * experts;
      for (std::int64_t i = 0; i < experts; ++i) dx[i] = (add ? dx[i] : T(0)) + gradient[i];
    }
  };
  return {.run = run, .scratch = 3 * experts + k};
}

// ---- tokens that are sent once ---------------------------------------------------------------------------------------------------

template <class T>
Kernel<T> send_forward(const Form& form, const SentTokens& s) {
  const std::int64_t k = s.chosen;
  form.expect({s.tokens * s.hidden, s.choices(), s.choices()},
              {s.rows() * s.hidden, s.rows() * k, s.rows() * k, s.tokens * s.parts});
  const auto run = [=](const Call<T>& call) {
    const std::int64_t* chosen = integers(call.reads[2]);
    std::int64_t *experts = integers_of(call.writes[2]), *places = integers_of(call.writes[3]);
    auto* taken = reinterpret_cast<std::int64_t*>(call.scratch);  // choices of each expert so far, then rows of each part
    auto* rows = taken + s.experts;
    std::fill_n(taken, s.experts + s.parts, 0);
    std::fill_n(call.out[0], s.rows() * s.hidden, T(0));
    std::fill_n(call.out[1], s.rows() * k, T(0));
    std::fill_n(experts, s.rows() * k, -1);
    std::fill_n(places, s.tokens * s.parts, -1);
    for (std::int64_t i = 0; i < s.choices(); ++i) {
      const std::int64_t token = i / k, expert = chosen[i], part = s.part(expert);
      if (s.op.capacity > 0 && taken[expert]++ >= s.op.capacity) continue;
      std::int64_t& place = places[token * s.parts + part];
      if (place < 0 && rows[part] < s.room) {
        place = part * s.room + rows[part]++;
        std::copy_n(call.in[0] + token * s.hidden, s.hidden, call.out[0] + place * s.hidden);
      }
      if (place < 0) continue;
      experts[place * k + i % k] = s.number(expert);
      call.out[1][place * k + i % k] = call.in[1][i];
    }
  };
  return {.run = run, .scratch = (s.experts + s.parts) * static_cast<std::int64_t>(sizeof(std::int64_t) / sizeof(T))};
}

// reads: gradients of the rows and of their weights, places
template <class T>
Kernel<T> send_backward(const Form& form, const SentTokens& s) {
  const bool add = form.what.accumulate;
  const std::int64_t all = s.tokens * s.hidden, k = s.chosen;
  form.expect({s.rows() * s.hidden, s.rows() * k, s.tokens * s.parts}, {all, s.choices()});
  return {.run = [=](const Call<T>& call) {
    const std::int64_t* places = integers(call.reads[2]);
    if (!add) std::fill_n(call.out[0], all, T(0));
    std::fill_n(call.out[1], s.choices(), T(0));
    for (std::int64_t i = 0; i < s.tokens * s.parts; ++i) {
      if (places[i] < 0) continue;
      const std::int64_t token = i / s.parts;
      const T *dy = call.in[0] + places[i] * s.hidden, *dw = call.in[1] + places[i] * k;
      T *dx = call.out[0] + token * s.hidden, *dweights = call.out[1] + token * k;
      for (std::int64_t h = 0; h < s.hidden; ++h) dx[h] += dy[h];
      for (std::int64_t j = 0; j < k; ++j) dweights[j] += dw[j];
    }
  }};
}

}  // namespace

template <class T>
Kernel<T> make_route(const Form& form) {
  const auto& dims = form.dims(0, 3);
  const Choice c = {form.as<ops::Route>(), dims[0], dims[1]};
  const bool groups = c.op.groups >= 1 && c.experts % c.op.groups == 0 && c.op.chosen_groups >= 1 &&
                      c.op.chosen_groups <= c.op.groups && c.op.chosen <= c.op.chosen_groups * (c.experts / c.op.groups);
  if (c.op.chosen < 1 || c.op.chosen != dims[2] || !groups || c.op.ranks < 1)
    form.refuse("\"" + settings_text(form.what.op) + "\" for " + std::to_string(c.experts) + " experts",
                "equal groups with at least as many experts as a token chooses");
  return form.forward() ? route_forward<T>(form, c) : route_backward<T>(form, c);
}

// reads: counts, biases; writes: biases, counts
template <class T>
Kernel<T> make_balance_experts(const Form& form) {
  const auto& dims = form.dims(0, 2);
  const std::int64_t routers = dims[0], experts = dims[1], all = routers * experts;
  form.expect({all, all}, {all, all});
  const T speed = static_cast<T>(form.as<ops::BalanceExperts>().speed);
  return {.run = [=](const Call<T>& call) {
    for (std::int64_t r = 0; r < routers; ++r) {
      const T *counts = call.in[0] + r * experts, *before = call.in[1] + r * experts;
      T *biases = call.out[0] + r * experts, *cleared = call.out[1] + r * experts;
      const double sum = std::accumulate(counts, counts + experts, 0.0);
      for (std::int64_t i = 0; i < experts; ++i) {
        const double times =
            static_cast<double>(counts[i]) * static_cast<double>(experts);  // compared with the sum, it is exact
        biases[i] = before[i] + (times < sum ? speed : times > sum ? -speed : T(0));
      }
      std::fill_n(cleared, experts, T(0));
    }
  }};
}

template Kernel<float> make_balance_experts(const Form&);
template Kernel<double> make_balance_experts(const Form&);
template Kernel<float> make_route(const Form&);
template Kernel<double> make_route(const Form&);

template <class T>
Kernel<T> make_send_once(const Form& form) {
  return form.forward() ? send_forward<T>(form, sent_tokens(form)) : send_backward<T>(form, sent_tokens(form));
}

template Kernel<float> make_send_once(const Form&);
template Kernel<double> make_send_once(const Form&);

}  // namespace foreshard::host
