// Conversions of layouts, and the toy product in all its partitions, carried out by host communicators: equal to the bit to one device,
// as all numbers are whole.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "core/graph/op_graph.h"
#include "core/model/model.h"
#include "core/network/tensor_layout.h"
#include "exec/communicator/thread_communicator.h"
#include "strategy/partition/matmul_partition.h"

namespace foreshard::layout_test {
namespace {

using Numbers = std::vector<double>;
using Shape2 = std::vector<std::int64_t>;

MemoryRange stretch(Numbers& values) {
  return {reinterpret_cast<std::byte*>(values.data()), {static_cast<std::int64_t>(values.size() * 8)}, DType::F64};
}

// A tensor over some devices.
struct Spread {
  Shape2 shape = {};
  TensorLayout layout = {};
  std::vector<Numbers> parts = {};  // [member]
  int members() const { return static_cast<int>(parts.size()); }
};

// Whole numbers below 64; of a partial tensor the parts add up to them.
Spread spread(const Shape2& shape, const Numbers& whole, const TensorLayout& layout, int members) {
  Spread out{shape, layout, {}};
  for (int m = 0; m < members; ++m) {
    Numbers part;
    for (const std::int64_t i : held_elements(layout, shape, members, m)) {
      const double value = whole[static_cast<std::size_t>(i)];
      const bool partial = layout.kind == TensorLayout::Kind::Partial;
      part.push_back(partial ? (m == 0 ? value - 5.0 * (members - 1) * static_cast<double>(i) : 5.0 * static_cast<double>(i))
                             : value);
    }
    out.parts.push_back(part);
  }
  return out;
}

void run(std::vector<std::unique_ptr<StreamTask>>& tasks) {
  std::vector<std::thread> threads;
  for (auto& task : tasks) threads.emplace_back([&task] { task->run(0); });
  for (std::thread& thread : threads) thread.join();
}

Spread converted(const Spread& from, const TensorLayout& to) {
  const int n = from.members();
  Spread out{from.shape, to, std::vector<Numbers>(from.parts.size())};
  Stop stop;
  ThreadMeetings meetings(stop);
  std::vector<RankId> members;
  for (int m = 0; m < n; ++m) members.push_back({m});
  std::vector<Numbers> put(from.parts.size()), found(from.parts.size());
  std::vector<std::unique_ptr<StreamTask>> tasks;
  for (int m = 0; m < n; ++m) {
    const auto at = static_cast<std::size_t>(m);
    const ConversionOrder order = conversion_order(from.layout, to, from.shape, n, m);
    const auto held = held_elements(from.layout, from.shape, n, m);
    const auto value = [&](std::int64_t element) {
      return from.parts[at][static_cast<std::size_t>(std::ranges::lower_bound(held, element) - held.begin())];
    };
    for (const std::int64_t element : order.put) put[at].push_back(value(element));
    found[at].assign(order.found.size(), 0);
    const auto kind = conversion(from.layout, to);
    if (!kind) {
      for (std::size_t i = 0; i < order.found.size(); ++i) found[at][i] = value(order.found[i]);
      continue;
    }
    const auto full = static_cast<std::int64_t>(8 * std::max(put[at].size(), found[at].size()));
    tasks.push_back(ThreadCommunicator(meetings, members[at])
                        .collective({.what = {.kind = *kind, .group = {0}, .bytes = {full}},
                                     .members = members,
                                     .from = stretch(put[at]),
                                     .to = stretch(found[at])}));
  }
  run(tasks);
  for (int m = 0; m < n; ++m) {
    const auto at = static_cast<std::size_t>(m);
    const auto held = held_elements(to, from.shape, n, m);
    const ConversionOrder order = conversion_order(from.layout, to, from.shape, n, m);
    out.parts[at].assign(held.size(), 0);
    for (std::size_t i = 0; i < order.found.size(); ++i)
      out.parts[at][static_cast<std::size_t>(std::ranges::lower_bound(held, order.found[i]) - held.begin())] = found[at][i];
  }
  return out;
}

Numbers numbers(std::int64_t count, int first) {
  Numbers all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(static_cast<double>((first + 7 * i) % 64));
  return all;
}

// What all members together say the tensor is; every copy and every part must agree.
Numbers whole(const Spread& of) {
  Numbers all(static_cast<std::size_t>(of.shape[0] * of.shape[1]));
  std::vector<char> known(all.size());
  for (int m = 0; m < of.members(); ++m) {
    const auto held = held_elements(of.layout, of.shape, of.members(), m);
    for (std::size_t i = 0; i < held.size(); ++i) {
      const auto element = static_cast<std::size_t>(held[i]);
      const double value = of.parts[static_cast<std::size_t>(m)][i];
      if (of.layout.kind == TensorLayout::Kind::Partial) {
        all[element] += value;
        continue;
      }
      EXPECT_TRUE(known[element] == 0 || all[element] == value) << element;
      known[element] = 1, all[element] = value;
    }
  }
  return all;
}

TEST(Layouts, EveryConversionKeepsTheTensor) {
  const std::vector<TensorLayout> layouts = {split(0), split(1), broadcast(), partial()};
  const Shape2 shape = {8, 24};
  const Numbers values = numbers(8 * 24, 3);
  for (const int n : {2, 4, 8})
    for (const TensorLayout& from : layouts)
      for (const TensorLayout& to : layouts) {
        const Spread before = spread(shape, values, from, n);
        ASSERT_EQ(whole(before), values);
        EXPECT_EQ(whole(converted(before, to)), values)
            << n << ": " << static_cast<int>(from.kind) << from.dim << " to " << static_cast<int>(to.kind) << to.dim;
      }
}

// c [m, n] = a [m, k] b [k, n], each turned over first where it says so; counts operations.
Numbers product(const Numbers& a, const Numbers& b, std::int64_t m, std::int64_t k, std::int64_t n, bool turn_a, bool turn_b,
                int& flops) {
  Numbers c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l) {
        const auto at_a = static_cast<std::size_t>(turn_a ? l * m + i : i * k + l);
        const auto at_b = static_cast<std::size_t>(turn_b ? j * k + l : l * n + j);
        c[static_cast<std::size_t>(i * n + j)] += a[at_a] * b[at_b];
        flops += 2;
      }
  return c;
}

struct Toy {
  static constexpr std::int64_t kBatch = 4, kIn = 5, kOut = 8;
  Numbers x = numbers(kBatch * kIn, 1), w = numbers(kIn * kOut, 2), dy = numbers(kBatch * kOut, 9);
  int flops = 0;
  Numbers y = product(x, w, kBatch, kIn, kOut, false, false, flops);
  Numbers dw = product(x, dy, kIn, kBatch, kOut, true, false, flops);
  Numbers dx = product(dy, w, kBatch, kOut, kIn, false, true, flops);
};

TEST(Layouts, TheToyProductTakes320OperationsEachWay) {
  EXPECT_EQ(Toy{}.flops, 3 * 320);
  EXPECT_EQ(model_flops_per_sample(load_model("toy-matmul"), 0).value * Toy::kBatch, 3 * 320);
}

// Each device multiplies what it holds; layouts say what follows.
TEST(Layouts, TheToyProductByDataAndByModel) {
  const Toy toy;
  const int n = 2;
  for (const MatmulPartition partition : {MatmulPartition::Data, MatmulPartition::Columns}) {
    const MatmulLayouts of = layouts_of(partition);
    const bool data = partition == MatmulPartition::Data;
    const std::int64_t rows = data ? Toy::kBatch / n : Toy::kBatch, columns = data ? Toy::kOut : Toy::kOut / n;
    const Spread x = spread({Toy::kBatch, Toy::kIn}, toy.x, of.x, n), w = spread({Toy::kIn, Toy::kOut}, toy.w, of.w, n);
    const Spread dy = spread({Toy::kBatch, Toy::kOut}, toy.dy, of.y, n);
    Spread y{{Toy::kBatch, Toy::kOut}, of.y, {}}, dw{{Toy::kIn, Toy::kOut}, of.dw, {}}, dx{{Toy::kBatch, Toy::kIn}, of.dx, {}};
    int flops = 0;
    for (std::size_t m = 0; m < n; ++m) {
      y.parts.push_back(product(x.parts[m], w.parts[m], rows, Toy::kIn, columns, false, false, flops));
      dw.parts.push_back(product(x.parts[m], dy.parts[m], Toy::kIn, rows, columns, true, false, flops));
      dx.parts.push_back(product(dy.parts[m], w.parts[m], rows, columns, Toy::kIn, false, true, flops));
    }
    EXPECT_EQ(flops, 3 * 320);
    EXPECT_EQ(whole(converted(y, of.y_after)), toy.y);
    EXPECT_EQ(whole(converted(dw, of.dw_after)), toy.dw);
    EXPECT_EQ(whole(converted(dx, of.dx_after)), toy.dx);
  }
}

// By pipeline: device 0 has w, device 1 what follows. y goes one way and dy the other, 32 elements each.
TEST(Layouts, TheToyProductByPipeline) {
  Toy toy;
  Stop stop;
  ThreadMeetings meetings(stop);
  ThreadCommunicator first(meetings, {0}), second(meetings, {1});
  Numbers y(toy.y.size()), dy(toy.dy.size());
  std::vector<std::unique_ptr<StreamTask>> there, back;
  there.push_back(first.exchange({.to = {1}, .tag = "y", .send = stretch(toy.y)}));
  there.push_back(second.exchange({.from = {0}, .tag = "y", .receive = stretch(y)}));
  back.push_back(second.exchange({.to = {0}, .tag = "dy", .send = stretch(toy.dy)}));
  back.push_back(first.exchange({.from = {1}, .tag = "dy", .receive = stretch(dy)}));
  run(there), run(back);
  int flops = 0;
  EXPECT_EQ(y, toy.y);
  EXPECT_EQ(product(toy.x, dy, Toy::kIn, Toy::kBatch, Toy::kOut, true, false, flops), toy.dw);
  EXPECT_EQ(product(dy, toy.w, Toy::kBatch, Toy::kOut, Toy::kIn, false, true, flops), toy.dx);
}

}  // namespace
}  // namespace foreshard::layout_test
