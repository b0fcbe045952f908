#include "sim/engine.h"

#include <xbt/log.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <cmath>
#include <csignal>
#include <deque>
#include <mutex>

#include "core/error.h"

// Three things of SimGrid that have no documented way in, named by their exported symbols (checked by tests/sim/engine_test.cpp).
//
// The clock goes on from one engine to the next, and with it the rounding of every later date. Setting it back to zero makes
// repeated simulations equal bit by bit.
extern double simgrid_clock asm("_ZN7simgrid6kernel10EngineImpl4now_E");
// Every engine adds callbacks for virtual machines to these signals and never takes them back: after a thousand engines each
// event would call a thousand of them. There are no virtual machines here, so all of them go.
using ActivitySignal = simgrid::xbt::signal<void(const simgrid::s4u::Activity&)>;
extern ActivitySignal activity_completion asm("_ZN7simgrid3s4u8Activity13on_completionE");
extern ActivitySignal activity_suspended asm("_ZN7simgrid3s4u8Activity12on_suspendedE");
extern ActivitySignal activity_resumed asm("_ZN7simgrid3s4u8Activity10on_resumedE");
extern simgrid::xbt::signal<void(const simgrid::s4u::Exec&)> exec_start asm("_ZN7simgrid3s4u4Exec8on_startE");
extern simgrid::xbt::signal<void(const simgrid::s4u::Host&)> host_change asm("_ZN7simgrid3s4u4Host15on_state_changeE");

namespace foreshard::sim {
namespace {

namespace sg4 = simgrid::s4u;
using simgrid::kernel::timer::Timer;
using Links = std::vector<simgrid::kernel::resource::StandardLinkImpl*>;

// SimGrid counts whole bytes. Counting in parts of a byte on links that are as many times faster keeps small messages
// exact.
constexpr double kPartsPerByte = 65536;

// Hands out the links that were chosen just before, whatever the two ends are.
class ChosenRoute final : public simgrid::kernel::routing::NetZoneImpl {
 public:
  explicit ChosenRoute(const std::string& name) : NetZoneImpl(name) {}
  void choose(const Links& links) { chosen_ = &links; }
  void get_local_route(const simgrid::kernel::routing::NetPoint*, const simgrid::kernel::routing::NetPoint*,
                       simgrid::kernel::routing::Route* into, double*) override {
    into->link_list_.insert(into->link_list_.end(), chosen_->begin(), chosen_->end());
  }
  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}

 private:
  const Links* chosen_ = nullptr;
};

// SimGrid's constructor installs handlers of its own (its SIGINT ends the process); the caller's come back.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], nullptr, &kept_[i]);
  }
  ~KeptSignals() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &kept_[i], nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGSEGV, SIGBUS};
  struct sigaction kept_[std::size(kSignals)] = {};
};

// An activity under way. SimGrid frees an activity with its last pointer, which must not happen inside its own
// callback.
struct Pending {
  sg4::ActivityPtr activity = {};
  Token token = {};
};

std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

std::unique_ptr<sg4::Engine> new_engine() {
  static bool configured = false;  // guarded by one_at_a_time(): the settings outlive every engine
  if (!configured) {
    xbt_log_control_set("root.thres:critical");
  }
  std::unique_ptr<sg4::Engine> engine;
  {
    const KeptSignals kept;
    engine = std::make_unique<sg4::Engine>("foreshard");
  }
  if (!configured) {
    sg4::Engine::set_config("network/model:CM02");
    sg4::Engine::set_config("network/crosstraffic:0");
    sg4::Engine::set_config("network/TCP-gamma:1e30");
    sg4::Engine::set_config("surf/precision:1e-12");
    configured = true;
  }
  simgrid_clock = 0;
  return engine;
}

}  // namespace

struct Engine::Platform {
  std::lock_guard<std::mutex> lock;
  Listener& listener;
  std::unique_ptr<sg4::Engine> engine;
  ChosenRoute* zone = nullptr;  // owned by the engine
  sg4::Host *source = nullptr, *sink = nullptr;
  Links links = {};
  std::vector<Links> routes = {};
  std::vector<sg4::Host*> workers = {};
  std::deque<Pending> pending = {};
  std::vector<Pending*> free = {};
  sg4::ActivityPtr just_finished = {};
  double t0 = 0;
  std::int64_t events = 0;

  explicit Platform(Listener& l) : lock(one_at_a_time()), listener(l), engine(new_engine()) {
    zone = new ChosenRoute("network");
    source = zone->get_iface()->create_host("source", 1.0);
    sink = zone->get_iface()->create_host("sink", 1.0);
    clear_signals();
    activity_completion.connect([this](const sg4::Activity& activity) {
      if (activity.get_state() == sg4::Activity::State::FINISHED) completed(activity.get_data<Pending>());
    });
  }
  ~Platform() {
    clear_signals();
    just_finished.reset();
    for (Pending& p : pending) p.activity.reset();
  }

  static void clear_signals() {
    activity_completion.disconnect_slots();
    activity_suspended.disconnect_slots();
    activity_resumed.disconnect_slots();
    exec_start.disconnect_slots();
    host_change.disconnect_slots();
  }

  Pending* keep(sg4::ActivityPtr activity, Token token) {
    if (free.empty()) free.push_back(&pending.emplace_back());
    Pending* p = free.back();
    free.pop_back();
    p->activity = std::move(activity);
    p->token = token;
    return p;
  }
  void completed(Pending* p) {
    just_finished = std::move(p->activity);  // frees the one before
    const Token token = p->token;
    free.push_back(p);
    ++events;
    listener.finished(token);
  }
};

Engine::Engine(Listener& listener) : platform_(std::make_unique<Platform>(listener)) {}

Engine::~Engine() = default;

int Engine::add_link(BytesPerSecond capacity) {
  FS_ASSERT(std::isfinite(capacity.value) && capacity.value > 0);
  Links& links = platform_->links;
  sg4::Link* link = platform_->zone->get_iface()->create_link(std::to_string(links.size()), capacity.value * kPartsPerByte);
  links.push_back(link->get_impl());
  return static_cast<int>(links.size()) - 1;
}

int Engine::add_route(const std::vector<int>& links) {
  FS_ASSERT(!links.empty());
  Links route;
  route.reserve(links.size());
  for (const int link : links) route.push_back(platform_->links.at(static_cast<std::size_t>(link)));
  platform_->routes.push_back(std::move(route));
  return static_cast<int>(platform_->routes.size()) - 1;
}

int Engine::add_worker(const std::vector<double>& speeds) {
  for (const double speed : speeds) FS_ASSERT(std::isfinite(speed) && speed > 0);
  auto& workers = platform_->workers;
  workers.push_back(platform_->zone->get_iface()->create_host("worker" + std::to_string(workers.size()), speeds));
  return static_cast<int>(workers.size()) - 1;
}

void Engine::start() {
  platform_->zone->get_iface()->seal();
  platform_->t0 = sg4::Engine::get_clock();
}

void Engine::after(Seconds delay, Token token) {
  FS_ASSERT(std::isfinite(delay.value) && delay.value >= 0);
  // Two words, so that SimGrid's task holds the callback without an allocation.
  struct Fire {
    Platform* platform;
    Token token;
    void operator()() const {
      ++platform->events;
      platform->listener.finished(token);
    }
  };
  Timer::set(sg4::Engine::get_clock() + delay.value, Fire{platform_.get(), token});
}

void Engine::transfer(int route, double bytes, Token token) {
  FS_ASSERT(std::isfinite(bytes) && bytes > 0);
  sg4::CommPtr comm = sg4::Comm::sendto_init(platform_->source, platform_->sink);
  comm->set_payload_size(static_cast<std::uint64_t>(std::llround(bytes * kPartsPerByte)));
  comm->set_data(platform_->keep(comm, token));
  platform_->zone->choose(platform_->routes[static_cast<std::size_t>(route)]);
  comm->start();
}

void Engine::compute(int worker, Seconds at_speed_one, Token token) {
  FS_ASSERT(std::isfinite(at_speed_one.value) && at_speed_one.value >= 0);
  sg4::ExecPtr exec = sg4::Exec::init();
  exec->set_flops_amount(at_speed_one.value)->set_host(platform_->workers[static_cast<std::size_t>(worker)]);
  exec->set_data(platform_->keep(exec, token));
  exec->start();
}

void Engine::set_speed(int worker, int speed) {
  platform_->workers[static_cast<std::size_t>(worker)]->set_pstate(static_cast<unsigned long>(speed));
}

Seconds Engine::now() const { return {sg4::Engine::get_clock() - platform_->t0}; }

void Engine::run() { platform_->engine->run(); }

std::int64_t Engine::events() const { return platform_->events; }

}  // namespace foreshard::sim
