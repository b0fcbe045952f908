// Both clocks against numbers derived on paper (links without latency, setup time as a delay), and each against the other.

#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "replay/light_clock.h"
#include "sim/forked_process.h"
#include "sim/simgrid_module.h"

namespace foreshard::sim::clock_test {
namespace {

using player::LightClock;
using player::Listener;
using player::Token;

// The clock of the SimGrid module, for the tests that have both.
struct SimGridClock {
  std::unique_ptr<player::Clock> clock = new_simgrid_clock();
};
player::Clock& clock_of(LightClock& light) { return light; }
player::Clock& clock_of(SimGridClock& simgrid) { return *simgrid.clock; }

// Runs continuations by number, so that a test reads as a script.
template <class SomeClock>
class Script final : public Listener {
  SomeClock some_clock_ = {};

 public:
  player::Clock& clock = clock_of(some_clock_);

  void run() { clock.run(*this); }

  void after(double seconds, std::function<void()> then) { clock.after({seconds}, keep(std::move(then))); }
  // A flow of `bytes` that begins at `alpha`; its end goes to ends[name].
  void flow(const std::string& name, int route, double bytes, double alpha = 0) {
    const auto begin = [=, this] { clock.transfer(route, bytes, keep([=, this] { ends[name] = clock.now().value; })); };
    if (alpha > 0)
      after(alpha, begin);
    else
      begin();
  }
  void work(const std::string& name, int worker, double seconds) {
    clock.compute(worker, {seconds}, keep([=, this] { ends[name] = clock.now().value; }));
  }
  void finished(Token token) override { std::exchange(thens_[token.which], nullptr)(); }
  std::map<std::string, double> ends = {};

 private:
  Token keep(std::function<void()> then) {
    thens_.push_back(std::move(then));
    return {0, static_cast<std::uint32_t>(thens_.size() - 1)};
  }
  std::deque<std::function<void()>> thens_ = {};
};

void near(double found, double expected) { EXPECT_NEAR(found, expected, 1e-12 * expected) << expected; }

// SimGrid's clock plays in a process of its own; what fails there fails here.
template <class SomeClock>
void play(const std::function<void()>& body) {
  if (std::is_same_v<SomeClock, LightClock>) return body();
  open_simgrid("the test");  // here, else each child would
  const SharedArray<bool> passed(1);
  ForkedProcess([&](const ForkedProcess::Progress&) {
    body();
    passed.items().front() = !testing::Test::HasFailure();
  }).wait();
  EXPECT_TRUE(passed.items().front());
}

template <class SomeClock>
class Clocks : public testing::Test {};
using Both = testing::Types<LightClock, SimGridClock>;
TYPED_TEST_SUITE(Clocks, Both);

// bytes / bandwidth + alpha, from one byte to the gradients of a large model.
TYPED_TEST(Clocks, OneFlow) {
  const struct {
    double bytes, bandwidth, alpha;
  } cases[] = {{1e6, 300e9, 2e-6}, {1, 300e9, 2e-6}, {350e9, 25e9, 5e-6}, {123457, 50e9, 0}};
  for (const auto& c : cases)
    play<TypeParam>([&c] {
      Script<TypeParam> s;
      const int route = s.clock.add_route({s.clock.add_link({c.bandwidth})});
      s.clock.start();
      s.flow("f", route, c.bytes, c.alpha);
      s.run();
      near(s.ends["f"], c.alpha + c.bytes / c.bandwidth);
    });
}

// Two flows of 1 GB on one 10 GB/s link: half each, both end at 0.2 s.
TYPED_TEST(Clocks, TwoFlowsShareEqually) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int route = s.clock.add_route({s.clock.add_link({10e9})});
    s.clock.start();
    s.flow("a", route, 1e9);
    s.flow("b", route, 1e9);
    s.run();
    near(s.ends["a"], 0.2);
    near(s.ends["b"], 0.2);
  });
}

// Unequal latencies must not change the shares. a begins x later than b; both need T = 0.1 s alone. b runs alone for x,
// then both get half: b has T - x left, which takes 2 (T - x): it ends at 2T - x. a has by then T - x of its work done
// and runs x alone: it ends at 2T. All times from the beginning of b.
TYPED_TEST(Clocks, UnequalLatenciesStayFair) {
  for (const auto& alphas : {std::pair{10e-6, 1e-6}, std::pair{10e-6, 0.0}})
    play<TypeParam>([&alphas] {
      const auto& [alpha_a, alpha_b] = alphas;
      Script<TypeParam> s;
      const int route = s.clock.add_route({s.clock.add_link({10e9})});
      s.clock.start();
      s.flow("a", route, 1e9, alpha_a);
      s.flow("b", route, 1e9, alpha_b);
      s.run();
      const double x = alpha_a - alpha_b;
      near(s.ends["b"], alpha_b + 0.2 - x);
      near(s.ends["a"], alpha_b + 0.2);
    });
}

// A transfer that has its links to itself, then shares one, then has them to itself again. Links of 10 and 5 GB/s; x crosses the first
// twice and the second once, so it runs at 5 GB/s. y joins on the first link at 1 s, when x has 5 of its 10 GB left: x and y get 10 / 3 GB/s
// each. y ends its 2.5 GB 0.75 s later, and x its other 2.5 GB at 5 GB/s at 2.25 s. z, over the first link from 3 s on, shares nothing.
TYPED_TEST(Clocks, ATransferIsJoinedWhileItHasItsLinksToItself) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int first = s.clock.add_link({10e9}), second = s.clock.add_link({5e9});
    const int both = s.clock.add_route({first, second, first}), one = s.clock.add_route({first});
    s.clock.start();
    s.flow("x", both, 10e9);
    s.flow("y", one, 2.5e9, 1);
    s.flow("z", one, 10e9, 3);
    s.run();
    near(s.ends["y"], 1.75);
    near(s.ends["x"], 2.25);
    near(s.ends["z"], 4);
    EXPECT_EQ(s.clock.events(), 5);  // with the two delays
  });
}

// One link per direction: both directions run at full rate.
TYPED_TEST(Clocks, DirectionsDoNotDisturbEachOther) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int up = s.clock.add_route({s.clock.add_link({10e9})});
    const int down = s.clock.add_route({s.clock.add_link({10e9})});
    s.clock.start();
    s.flow("up", up, 1e9);
    s.flow("down", down, 1e9);
    s.run();
    near(s.ends["up"], 0.1);
    near(s.ends["down"], 0.1);
  });
}

// A half-duplex medium is one link that both directions cross.
TYPED_TEST(Clocks, OneLinkUsedBothWaysHalves) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int shared = s.clock.add_link({10e9});
    const int up = s.clock.add_route({shared}), down = s.clock.add_route({shared});
    s.clock.start();
    s.flow("up", up, 1e9);
    s.flow("down", down, 1e9);
    s.run();
    near(s.ends["up"], 0.2);
    near(s.ends["down"], 0.2);
  });
}

TYPED_TEST(Clocks, NarrowestLinkOfARouteCounts) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    player::Clock& e = s.clock;
    const int route = e.add_route({e.add_link({64e9}), e.add_link({50e9}), e.add_link({400e9})});
    e.start();
    s.flow("f", route, 1e9);
    s.run();
    near(s.ends["f"], 0.02);
  });
}

// Two GPUs below one PCIe switch with a 25 GB/s uplink: 12.5 GB/s each although their own lanes carry 32 GB/s.
TYPED_TEST(Clocks, PcieSwitchUplinkIsShared) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    player::Clock& e = s.clock;
    const int uplink = e.add_link({25e9});
    const int a = e.add_route({e.add_link({32e9}), uplink}), b = e.add_route({e.add_link({32e9}), uplink});
    e.start();
    s.flow("a", a, 1e9);
    s.flow("b", b, 1e9);
    s.run();
    near(s.ends["a"], 0.08);
    near(s.ends["b"], 0.08);
  });
}

// Max-min: links 1 (10 GB/s) and 2 (6 GB/s); a crosses 1, b crosses 1 and 2, c crosses 2. b and c get 3, a gets 7 GB/s.
// With 7, 3 and 6 GB: a ends at 1 s, b at 1 s, c has 3 GB left and the whole of link 2: 1.5 s.
TYPED_TEST(Clocks, MaxMinTextbook) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    player::Clock& e = s.clock;
    const int one = e.add_link({10e9}), two = e.add_link({6e9});
    const int a = e.add_route({one}), b = e.add_route({one, two}), c = e.add_route({two});
    e.start();
    s.flow("a", a, 7e9);
    s.flow("b", b, 3e9);
    s.flow("c", c, 6e9);
    s.run();
    near(s.ends["a"], 1.0);
    near(s.ends["b"], 1.0);
    near(s.ends["c"], 1.5);
  });
}

TYPED_TEST(Clocks, TwoThousandFlowsOnOneLink) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int route = s.clock.add_route({s.clock.add_link({10e9})});
    s.clock.start();
    for (int i = 0; i < 2000; ++i) s.flow("f" + std::to_string(i), route, 1e6);
    s.run();
    ASSERT_EQ(s.ends.size(), 2000u);
    for (const auto& [name, end] : s.ends) near(end, 0.2);
  });
}

// A flow that lists a link three times uses three shares of it: beside a single one both get a quarter.
TYPED_TEST(Clocks, RepeatedLinkIsAWeight) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int link = s.clock.add_link({8e9});
    const int three = s.clock.add_route({link, link, link}), one = s.clock.add_route({link});
    s.clock.start();
    s.flow("three", three, 1e9);
    s.flow("one", one, 2e9);
    s.run();
    near(s.ends["three"], 0.5);            // 2 GB/s
    near(s.ends["one"], 0.5 + 1e9 / 8e9);  // 1 GB left at 8 GB/s
  });
}

// A flow that lists link 2 so often that what it leaves is 2e-6 of the link: link 1 (1 GB/s) is full first, the other flow has the rest
// of link 2, 2 GB/s. With 1 and 2 GB both end at 1 s.
TYPED_TEST(Clocks, TheSmallestShareOfALinkIsNotLost) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    player::Clock& e = s.clock;
    const int times = 1'000'000, one = e.add_link({1e9}), two = e.add_link({(times + 2) * 1e9});
    std::vector<int> often(times, two);
    often.push_back(one);
    const int a = e.add_route(often), b = e.add_route({two});
    e.start();
    s.flow("a", a, 1e9);
    s.flow("b", b, 2e9);
    s.run();
    EXPECT_NEAR(s.ends["a"], 1, 1e-9);
    EXPECT_NEAR(s.ends["b"], 1, 1e-9);
  });
}

// 10 s of work; from 2 s to 6 s at 0.8: 2 + 4 * 0.8 = 5.2 done, 4.8 left: 10.8 s.
TYPED_TEST(Clocks, WorkerSlowsInTheMiddle) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int worker = s.clock.add_worker();
    s.clock.start();
    s.work("w", worker, 10);
    s.after(2, [&] { s.clock.set_speed(worker, 0.8); });
    s.after(6, [&] { s.clock.set_speed(worker, 1); });
    s.run();
    near(s.ends["w"], 10.8);
  });
}

TYPED_TEST(Clocks, CloseCompletionsAreNotMerged) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    player::Clock& e = s.clock;
    const int a = e.add_route({e.add_link({1e12})}), b = e.add_route({e.add_link({1e12})});
    e.start();
    s.flow("a", a, 1e9);
    s.flow("b", b, 1e9 + 300);  // 0.3 ns longer
    s.run();
    EXPECT_NEAR(s.ends["b"] - s.ends["a"], 3e-10, 1e-14);
  });
}

// A flow and a delay end together at 1 s, while another flow goes on until 2 s. The end of the first is known at 1 s, and not only when the
// delay that ends at 1.5 s has been handled.
TYPED_TEST(Clocks, AFlowThatEndsWithADelayEndsThen) {
  play<TypeParam>([] {
    Script<TypeParam> s;
    const int one = s.clock.add_route({s.clock.add_link({1e9})}), other = s.clock.add_route({s.clock.add_link({1e9})});
    s.clock.start();
    s.flow("a", one, 1e9);
    s.flow("b", other, 2e9);
    s.after(1, [] {});
    s.after(1.5, [&s] { EXPECT_EQ(s.ends.count("a"), 1u); });
    s.run();
    near(s.ends["a"], 1);
    near(s.ends["b"], 2);
  });
}

// Flows that begin at random over random routes; capacities that are nearly equal (1 and 1 +- 1e-6), links listed up to 4096 times.
struct RandomTraffic {
  std::vector<double> capacities = {};
  std::vector<std::vector<int>> routes = {};
  struct Flow {
    int route = 0;
    double bytes = 0, begin = 0;
  };
  std::vector<Flow> flows = {};
};

RandomTraffic traffic(unsigned seed) {
  std::mt19937 draw(seed);
  const auto below = [&draw](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  RandomTraffic made;
  const int most = seed % 4 == 0 ? 4096 : 3;  // times that a route crosses a link
  for (int l = 0, links = 1 + below(6); l < links; ++l)
    made.capacities.push_back(1e9 * (1 + below(2)) * (1 + 1e-6 * (below(3) - 1)) * (below(3) == 0 ? most : 1));
  for (int r = 0; r < 4; ++r) {
    made.routes.emplace_back();
    for (int c = 0, crossed = 1 + below(3); c < crossed; ++c) {
      const int link = below(static_cast<int>(made.capacities.size())), times = below(3) == 0 ? 1 + below(most) : 1;
      made.routes.back().insert(made.routes.back().end(), static_cast<std::size_t>(times), link);
    }
  }
  for (int f = 0, flows = 1 + below(12); f < flows; ++f)
    made.flows.push_back({below(4), 1e6 * (1 + below(50)), below(2) == 0 ? 0 : 1e-3 * below(20)});
  return made;
}

template <class SomeClock>
std::vector<double> ends_of(const RandomTraffic& made) {
  Script<SomeClock> s;
  for (const double capacity : made.capacities) s.clock.add_link({capacity});
  for (const std::vector<int>& route : made.routes) s.clock.add_route(route);
  s.clock.start();
  for (std::size_t f = 0; f < made.flows.size(); ++f)
    s.flow(std::to_string(f), made.flows[f].route, made.flows[f].bytes, made.flows[f].begin);
  s.run();
  std::vector<double> ends;
  for (std::size_t f = 0; f < made.flows.size(); ++f) ends.push_back(s.ends.at(std::to_string(f)));
  return ends;
}

TEST(SimGridClock, AgreesWithTheLightClock) {
  open_simgrid("the test");
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    const RandomTraffic made = traffic(seed);
    const SharedArray<double> simgrid(made.flows.size());
    ForkedProcess([&](const ForkedProcess::Progress&) {
      std::ranges::copy(ends_of<SimGridClock>(made), simgrid.items().begin());
    }).wait();
    const std::vector<double> light = ends_of<LightClock>(made);
    for (std::size_t f = 0; f < light.size(); ++f) {
      const double end = simgrid.items()[f];
      ASSERT_NEAR(light[f], end, 1e-9 * end) << "seed " << seed << " flow " << f;
    }
  }
}

void interrupted(int) {}

TEST(SimGridClock, SignalHandlersAreTheCallers) {
  play<SimGridClock>([] {
    std::signal(SIGINT, interrupted);
    struct sigaction segv = {}, now = {};
    sigaction(SIGSEGV, nullptr, &segv);
    Script<SimGridClock> s;
    EXPECT_EQ(std::signal(SIGINT, SIG_DFL), interrupted);
    sigaction(SIGSEGV, nullptr, &now);
    EXPECT_EQ(now.sa_handler, segv.sa_handler);
  });
}

TEST(SimGridClock, AProcessHasOne) {
  play<SimGridClock>([] {
    { Script<SimGridClock> s; }
    EXPECT_THROW(Script<SimGridClock>(), Error);
  });
}

}  // namespace
}  // namespace foreshard::sim::clock_test
