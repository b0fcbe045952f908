// The twin of cuDNN's attention: the sums of attention_call.h, one after the other, in double.
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/base/philox.h"
#include "tests/cuda/fake_parts.h"

namespace foreshard::gpu {

namespace {

constexpr const char* kAttention = "cudnnBackendExecute";

double number(const AttentionCall& call, const AttentionArray& array, std::int64_t at) {
  double value;
  host::load({array.data, INT64_MAX, call.dtype}, at, 1, &value);
  return value;
}
std::int64_t place(const AttentionArray& array, std::int64_t sample, std::int64_t head, std::int64_t position) {
  return sample * array.sample_step + head * array.head_step + position * array.row_step;
}
// Elements of a row: of values and contexts those of a value head.
std::int64_t width(const AttentionCall& call, const AttentionArray& array) {
  for (const AttentionArray* of_values : {&call.v, &call.dv, &call.context, &call.dcontext})
    if (&array == of_values) return call.value_dim;
  return call.dim;
}
std::vector<double> row(const AttentionCall& call, const AttentionArray& array, std::int64_t sample, std::int64_t head,
                        std::int64_t position) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < width(call, array); ++i)
    all.push_back(number(call, array, place(array, sample, head, position) + i));
  return all;
}
void put_row(const AttentionCall& call, const AttentionArray& array, std::int64_t sample, std::int64_t head,
             std::int64_t position, const std::vector<double>& values) {
  host::store(values.data(), width(call, array), {array.data, INT64_MAX, call.dtype}, place(array, sample, head, position));
}
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
void add(std::vector<double>& to, double times, const std::vector<double>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += times * from[i];
}
std::int64_t seen(const AttentionCall& call, std::int64_t query) {
  return call.causal ? std::min(query + 1, call.keys) : call.keys;
}

std::int64_t first_seen(const AttentionCall& call, std::int64_t query) {
  return call.window > 0 ? std::max<std::int64_t>(0, query - call.window + 1) : 0;
}

std::int64_t random_number(const AttentionCall& call, int which) {
  std::int64_t number;
  std::memcpy(&number, call.random + which * static_cast<int>(sizeof number), sizeof number);
  return number;
}

// What an entry of the softmax is multiplied by: random words of the seed, the offset and the place of the entry alone.
double kept(const AttentionCall& call, std::int64_t sample, std::int64_t head, std::int64_t query, std::int64_t key) {
  if (call.dropped == 0) return 1;
  const std::int64_t place = ((sample * call.heads + head) * call.queries + query) * call.keys + key;
  const std::uint32_t word = philox(static_cast<std::uint64_t>(random_number(call, 0)),
                                    static_cast<std::uint64_t>(random_number(call, 1)), static_cast<std::uint64_t>(place))[0];
  return word < static_cast<double>(call.dropped) * 4294967296.0 ? 0 : 1 / (1 - static_cast<double>(call.dropped));
}

using Rows = std::vector<std::vector<double>>;
Rows rows(const AttentionCall& call, const AttentionArray& array, std::int64_t sample, std::int64_t head, std::int64_t count) {
  Rows all;
  for (std::int64_t p = 0; p < count; ++p) all.push_back(row(call, array, sample, head, p));
  return all;
}

void forward_head(const AttentionCall& call, std::int64_t sample, std::int64_t head, const Rows& k, const Rows& v) {
  for (std::int64_t p = 0; p < call.queries; ++p) {
    const std::vector<double> q = row(call, call.q, sample, head, p);
    std::vector<double> context(static_cast<std::size_t>(call.value_dim)), scores;
    double largest = -HUGE_VAL, sum = 0;
    const std::int64_t first = first_seen(call, p);
    for (std::int64_t j = first; j < seen(call, p); ++j) {
      scores.push_back(call.scale * dot(q, k[static_cast<std::size_t>(j)]));
      largest = std::max(largest, scores.back());
    }
    for (const double score : scores) sum += std::exp(score - largest);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::int64_t j = first + static_cast<std::int64_t>(i);
      add(context, std::exp(scores[i] - largest) / sum * kept(call, sample, head, p, j), v[static_cast<std::size_t>(j)]);
    }
    put_row(call, call.context, sample, head, p, context);
    const auto lse = static_cast<float>(largest + std::log(sum));
    std::memcpy(call.lse + 4 * ((sample * call.heads + head) * call.queries + p), &lse, sizeof lse);
  }
}

void backward_head(const AttentionCall& call, std::int64_t sample, std::int64_t head, const Rows& k, const Rows& v, Rows& dk,
                   Rows& dv) {
  for (std::int64_t p = 0; p < call.queries; ++p) {
    const std::vector<double> q = row(call, call.q, sample, head, p), dcontext = row(call, call.dcontext, sample, head, p);
    const double delta = dot(dcontext, row(call, call.context, sample, head, p));
    float lse;
    std::memcpy(&lse, call.lse + 4 * ((sample * call.heads + head) * call.queries + p), sizeof lse);
    std::vector<double> dq(static_cast<std::size_t>(call.dim));
    for (std::int64_t key = first_seen(call, p); key < seen(call, p); ++key) {
      const auto j = static_cast<std::size_t>(key);
      const double share = std::exp(call.scale * dot(q, k[j]) - static_cast<double>(lse));
      const double factor = kept(call, sample, head, p, key);
      const double slope = share * (factor * dot(dcontext, v[j]) - delta) * call.scale;
      add(dv[j], share * factor, dcontext);
      add(dk[j], slope, q);
      add(dq, slope, k[j]);
    }
    put_row(call, call.dq, sample, head, p, dq);
  }
}

void attend(const AttentionCall& call) {
  const std::int64_t group = call.heads / call.kv_heads;
  for (std::int64_t sample = 0; sample < call.samples; ++sample)
    for (std::int64_t kv = 0; kv < call.kv_heads; ++kv) {
      const Rows k = rows(call, call.k, sample, kv, call.keys), v = rows(call, call.v, sample, kv, call.keys);
      Rows dk(k.size(), std::vector<double>(static_cast<std::size_t>(call.dim)));
      Rows dv(v.size(), std::vector<double>(static_cast<std::size_t>(call.value_dim)));
      for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
        if (call.backward)
          backward_head(call, sample, head, k, v, dk, dv);
        else
          forward_head(call, sample, head, k, v);
      }
      for (std::int64_t p = 0; call.backward && p < call.keys; ++p) {
        put_row(call, call.dk, sample, kv, p, dk[static_cast<std::size_t>(p)]);
        put_row(call, call.dv, sample, kv, p, dv[static_cast<std::size_t>(p)]);
      }
    }
}

}  // namespace

std::vector<FakeRuntime::DrawnMask> FakeRuntime::drawn_masks() const {
  const std::lock_guard lock(mutex_);
  return drawn_masks_;
}

std::optional<Bytes> FakeRuntime::attention_workspace(const AttentionCall& call) {
  if (!settings_.library_attention || call.dim % 8 != 0 || call.value_dim % 8 != 0 || call.dim > 256) return {};
  return Bytes{64 + 4 * call.samples * call.heads * call.queries};
}

std::string FakeRuntime::attention_refusal(const AttentionCall& call) {
  if (!settings_.library_attention) return "cuDNN is not there";
  return std::string("the fake has no such ") + (call.backward ? "backward" : "forward");
}

void FakeRuntime::attention(const AttentionCall& call, std::byte* workspace, Stream* stream) {
  expect_current(stream, kAttention);
  const std::optional<Bytes> wanted = attention_workspace(call);
  if (!wanted || !workspace || (call.dropped > 0) != (call.random != nullptr))
    throw DeviceError(kAttention, "CUDNN_STATUS_BAD_PARAM");
  {
    const std::lock_guard lock(mutex_);
    ++library_attentions_;
    attentions_in_any_order_ += call.any_order ? 1 : 0;
  }
  const auto range = [&](const AttentionArray& array, std::int64_t heads, std::int64_t positions, bool write) {
    const std::int64_t last = place(array, call.samples - 1, heads - 1, positions - 1) + width(call, array);
    return Range{array.data, array.data + last * size_of(call.dtype).value, write};
  };
  std::vector<Range> ranges = {range(call.q, call.heads, call.queries, false),
                               range(call.k, call.kv_heads, call.keys, false),
                               range(call.v, call.kv_heads, call.keys, false),
                               range(call.context, call.heads, call.queries, !call.backward),
                               {call.lse, call.lse + 4 * call.samples * call.heads * call.queries, !call.backward},
                               {workspace, workspace + wanted->value, true}};
  if (call.random) ranges.push_back({call.random, call.random + 2 * sizeof(std::int64_t), false});
  if (call.backward) {
    ranges.push_back(range(call.dcontext, call.heads, call.queries, false));
    ranges.push_back(range(call.dq, call.heads, call.queries, true));
    ranges.push_back(range(call.dk, call.kv_heads, call.keys, true));
    ranges.push_back(range(call.dv, call.kv_heads, call.keys, true));
  }
  put_work(stream, kAttention, ranges, [this, call, ranges, workspace, bytes = wanted->value, device = stream->device] {
    failure_ = out_of_reach(device, ranges);
    if (!failure_.empty()) return;
    std::memset(workspace, 0x5A, static_cast<std::size_t>(bytes));
    if (call.random) drawn_masks_.push_back({call.backward, random_number(call, 0), random_number(call, 1)});
    attend(call);
  });
}

}  // namespace foreshard::gpu
