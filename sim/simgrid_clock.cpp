// The only file that includes SimGrid.
#include <xbt/log.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <deque>
#include <limits>

#include "core/base/error.h"
#include "replay/event_queue.h"
#include "sim/simgrid_module.h"

namespace foreshard::sim {
namespace {

namespace sg4 = simgrid::s4u;
using player::Event;
using player::Listener;
using player::Token;
using simgrid::kernel::timer::Timer;
using Links = std::vector<simgrid::kernel::resource::StandardLinkImpl*>;

// SimGrid counts whole bytes. To keep small messages exact, sizes and link capacities are both multiplied by this number.
constexpr double kPartsPerByte = 65536;

// SimGrid ends what would end within this time, in seconds.
constexpr double kPrecision = 1e-12;

// A network zone whose route between any two points is the list of links that was last chosen. The clock chooses before each transfer.
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

// Restores the caller's signal handlers at the end of its scope: SimGrid's constructor replaces them (its SIGINT handler ends the process).
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

// A transfer that SimGrid is running. SimGrid frees an activity with its last pointer, which must not happen inside the activity's own
// completion callback.
struct Pending {
  sg4::ActivityPtr activity = {};
  Token token = {};
};

std::unique_ptr<sg4::Engine> new_engine() {
  xbt_log_control_set("root.thres:critical");
  std::unique_ptr<sg4::Engine> engine;
  {
    const KeptSignals kept;
    engine = std::make_unique<sg4::Engine>("foreshard");
  }
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:1e30");
  sg4::Engine::set_config("surf/precision", kPrecision);
  sg4::Engine::set_config("maxmin/precision:1e-14");  // relative to a link's capacity: folded flows may have a millionth of it
  return engine;
}

// A processor that runs one compute at a time. At time `since` the compute had `left` seconds at full speed to go. Its end is planned
// again whenever the speed changes; `version` numbers these plans, and only the end with the newest number counts.
struct Worker {
  double speed = 1, left = 0, since = 0;
  bool busy = false;
  std::uint32_t version = 0;
  Token token = {};
};

// A transfer that was requested while this clock was ahead of SimGrid's. It begins when SimGrid's clock has caught up.
struct Asked {
  int route = 0;
  double bytes = 0;
  Token token = {};
};

// Values of Event::kind. In a delay, Event::which and Event::version hold the token's two words.
enum Kind : std::uint32_t { kDelay, kCompute };

struct Platform {
  Listener* listener = nullptr;  // while running
  std::unique_ptr<sg4::Engine> engine;
  ChosenRoute* zone = nullptr;  // owned by the engine
  sg4::Host *source = nullptr, *sink = nullptr;
  Links links = {};
  std::vector<Links> routes = {};
  std::vector<Worker> workers = {};
  player::EventQueue queue = {};  // delays and computes
  Timer* timer = nullptr;         // SimGrid's timer for the next event of `queue`, or for the transfers in `asked`
  double now = 0;                 // SimGrid's time, or ahead of it, but before a transfer ends: until then no rate changes
  int under_way = 0;              // transfers that SimGrid is running
  std::vector<Asked> asked = {};  // transfers to begin when SimGrid's time reaches `now`
  simgrid::kernel::resource::Model* network = nullptr;  // runs the transfers; owned by the engine
  std::deque<Pending> pending = {};
  std::vector<Pending*> free = {};
  sg4::ActivityPtr just_finished = {};
  std::int64_t events = 0;

  Platform() : engine(new_engine()) {
    zone = new ChosenRoute("network");
    source = zone->get_iface()->create_host("source", 1.0);
    sink = zone->get_iface()->create_host("sink", 1.0);
    network = dynamic_cast<simgrid::kernel::resource::Model*>(zone->get_iface()->get_network_model());
    FS_ASSERT(network != nullptr);
    sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) {
      if (activity.get_state() == sg4::Activity::State::FINISHED) completed(activity.get_data<Pending>());
    });
  }
  ~Platform() {
    just_finished.reset();
    for (Pending& p : pending) p.activity.reset();
  }

  Pending* keep(sg4::ActivityPtr activity, Token token) {
    if (free.empty()) free.push_back(&pending.emplace_back());
    Pending* p = free.back();
    free.pop_back();
    p->activity = std::move(activity);
    p->token = token;
    return p;
  }
  void plan_end(int worker) {
    Worker& w = workers[static_cast<std::size_t>(worker)];
    w.since = now;
    queue.plan(w.since + w.left / w.speed, kCompute, static_cast<std::uint32_t>(worker), ++w.version);
  }
  bool is_current(const Event& event) const {
    return event.kind == kDelay || (workers[event.which].busy && workers[event.which].version == event.version);
  }
  // The first event that is still current (drops outdated ends of computes); null if no event is left.
  const Event* first() {
    while (!queue.empty() && !is_current(queue.first())) queue.take_first();
    return queue.empty() ? nullptr : &queue.first();
  }
  void begin(const Asked& transfer) {
    const sg4::CommPtr comm = sg4::Comm::sendto_init(source, sink);
    comm->set_payload_size(static_cast<std::uint64_t>(std::llround(transfer.bytes * kPartsPerByte)));
    comm->set_data(keep(comm, transfer.token));
    zone->choose(routes[static_cast<std::size_t>(transfer.route)]);
    comm->start();
    ++under_way;
  }
  bool is_ahead() const { return now > sg4::Engine::get_clock(); }
  // SimGrid gets a single timer, that of the next event: its heap is slow with many timers.
  void set_timer() {
    const Event* next = asked.empty() ? first() : nullptr;
    const bool needed = next != nullptr || !asked.empty();
    const double time = next != nullptr ? next->time : now;
    if (timer != nullptr && needed && timer->get_date() == time) return;
    if (timer != nullptr) timer->remove();
    timer = nullptr;
    if (!needed) return;
    struct Fire {
      Platform* platform;
      void operator()() const { platform->fire(); }
    };
    timer = Timer::set(time, Fire{this});
  }
  // The time at which SimGrid ends the next transfer, if none begins before: now, if one has ended that completed() was not told of yet. To
  // find it SimGrid shares its links, as its next step would.
  double next_end() const {
    if (under_way == 0) return std::numeric_limits<double>::infinity();
    const double clock = sg4::Engine::get_clock();
    if (!network->get_finished_action_set()->empty()) return clock;
    const double delay = network->next_occurring_event(clock);
    return delay < 0 ? clock : clock + delay;
  }
  // Runs the events that are due, and the later ones up to the time at which a transfer begins or ends: in between no rate changes, so
  // SimGrid need not stop there.
  void fire() {
    timer = nullptr;
    now = std::max(now, sg4::Engine::get_clock());
    for (const Asked& transfer : asked) begin(transfer);
    asked.clear();
    double end = -1;
    int transfers = 0;  // under way when `end` was found
    for (const Event* next = first(); next != nullptr; next = first()) {
      if (next->time > now) {
        if (!asked.empty()) break;
        if (end < 0 || transfers != under_way) end = next_end(), transfers = under_way;
        if (next->time + kPrecision >= end) break;
      }
      const Event event = queue.take_first();
      now = std::max(now, event.time);
      ++events;
      if (event.kind == kDelay) {
        listener->finished({event.which, event.version});
      } else {
        workers[event.which].busy = false;
        listener->finished(workers[event.which].token);
      }
    }
    set_timer();
  }
  void completed(Pending* p) {
    just_finished = std::move(p->activity);  // frees the one before
    const Token token = p->token;
    free.push_back(p);
    --under_way;
    now = std::max(now, sg4::Engine::get_clock());
    ++events;
    listener->finished(token);
    set_timer();
  }
};

class SimGridClock final : public player::Clock {
 public:
  int add_link(BytesPerSecond capacity) override {
    FS_ASSERT(std::isfinite(capacity.value) && capacity.value > 0);
    Links& links = platform_.links;
    sg4::Link* link = platform_.zone->get_iface()->create_link(std::to_string(links.size()), capacity.value * kPartsPerByte);
    links.push_back(link->get_impl());
    return static_cast<int>(links.size()) - 1;
  }

  int add_route(const std::vector<int>& links) override {
    FS_ASSERT(!links.empty());
    Links route;
    route.reserve(links.size());
    for (const int link : links) route.push_back(platform_.links.at(static_cast<std::size_t>(link)));
    platform_.routes.push_back(std::move(route));
    return static_cast<int>(platform_.routes.size()) - 1;
  }

  int add_worker() override {
    platform_.workers.emplace_back();
    return static_cast<int>(platform_.workers.size()) - 1;
  }

  void start() override { platform_.zone->get_iface()->seal(); }

  void after(Seconds delay, Token token) override {
    FS_ASSERT(std::isfinite(delay.value) && delay.value >= 0);
    platform_.queue.plan(platform_.now + delay.value, kDelay, token.what, token.which);
  }

  void transfer(int route, double bytes, Token token) override {
    FS_ASSERT(std::isfinite(bytes) && bytes > 0);
    FS_ASSERT(route >= 0 && static_cast<std::size_t>(route) < platform_.routes.size());
    if (const Asked transfer = {route, bytes, token}; platform_.is_ahead())
      platform_.asked.push_back(transfer);
    else
      platform_.begin(transfer);
  }

  void compute(int worker, Seconds at_full_speed, Token token) override {
    FS_ASSERT(std::isfinite(at_full_speed.value) && at_full_speed.value >= 0);
    Worker& w = platform_.workers[static_cast<std::size_t>(worker)];
    FS_ASSERT(!w.busy);
    w.busy = true;
    w.left = at_full_speed.value;
    w.token = token;
    platform_.plan_end(worker);
  }

  void set_speed(int worker, double speed) override {
    FS_ASSERT(std::isfinite(speed) && speed > 0);
    Worker& w = platform_.workers[static_cast<std::size_t>(worker)];
    if (speed == w.speed) return;
    if (w.busy) w.left = std::max(0.0, w.left - (platform_.now - w.since) * w.speed);
    w.speed = speed;
    if (w.busy) platform_.plan_end(worker);
  }

  Seconds now() const override { return {platform_.now}; }

  void run(Listener& listener) override {
    platform_.listener = &listener;
    platform_.set_timer();
    platform_.engine->run();
    platform_.listener = nullptr;
  }

  std::int64_t events() const override { return platform_.events; }

 private:
  Platform platform_ = {};
};

}  // namespace

// ModuleEntry (sim/simgrid_module.h). SimGrid's clock goes on from one engine to the next, every engine adds callbacks that stay, and two at
// a time abort: hence one clock in a process.
extern "C" __attribute__((visibility("default"))) player::Clock* foreshard_simgrid_clock(int version, const char** why) {
  static std::atomic<bool> taken = false;
  if (version != kModuleVersion)
    *why = "libforeshard_simgrid.so is of another build";
  else if (taken.exchange(true))
    *why = "a process plays one simulation (sim/forked_process.h), and this one has played its own";
  else
    return new SimGridClock;
  return nullptr;
}

}  // namespace foreshard::sim
