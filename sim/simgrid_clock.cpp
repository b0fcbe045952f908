// The only file that includes SimGrid.
#include <xbt/log.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
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

struct Route {
  Links links = {};               // a link that is crossed k times is listed k times
  std::vector<int> crossed = {};  // each of them once
  double alone = 0;               // parts per second of a transfer with all of these links to itself
};

// A transfer that has not ended. While it has all its links to itself, its rate is known and SimGrid is not told of it: starting it there
// takes time for each entry of its route. SimGrid gets what is left of it when another transfer begins on one of its links. SimGrid frees an
// activity with its last pointer, which must not happen inside the activity's own completion callback.
struct Transfer {
  std::uint32_t number = 0;  // its index
  int route = 0;
  double parts = 0;           // when it began; of SimGrid: when SimGrid gets it
  double since = 0, end = 0;  // while it is alone
  std::uint32_t version = 0;  // of this end
  bool alone = false;
  sg4::ActivityPtr activity = {};  // of SimGrid
  Token token = {};
};

// SimGrid 4.0 calls them add_host and add_link.
template <class Zone>
sg4::Host* new_host(Zone& zone, const std::string& name) {
  if constexpr (requires { zone.add_host(name, 1.0); })
    return zone.add_host(name, 1.0);
  else
    return zone.create_host(name, 1.0);
}
template <class Zone>
sg4::Link* new_link(Zone& zone, const std::string& name, double bandwidth) {
  if constexpr (requires { zone.add_link(name, bandwidth); })
    return zone.add_link(name, bandwidth);
  else
    return zone.create_link(name, bandwidth);
}

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

struct LinkUsers {  // transfers on a link
  int count = 0;
  Transfer* alone = nullptr;  // the one that is alone, if any is
};

// Values of Event::kind. In a delay, Event::which and Event::version hold the token's two words.
enum Kind : std::uint32_t { kDelay, kCompute, kTransfer };

struct Platform {
  Listener* listener = nullptr;  // while running
  std::unique_ptr<sg4::Engine> engine;
  ChosenRoute* zone = nullptr;  // owned by the engine
  sg4::Host *source = nullptr, *sink = nullptr;
  Links links = {};
  std::vector<double> capacities = {};  // [link], parts per second
  std::vector<Route> routes = {};
  std::vector<LinkUsers> users = {};  // [link]
  std::vector<Worker> workers = {};
  player::EventQueue queue = {};      // ends of delays and computes
  player::EventQueue ends = {};       // of transfers that are alone
  Timer* timer = nullptr;             // SimGrid's timer for the next event of the two, or for the transfers in `asked`
  double now = 0;                     // SimGrid's time, or ahead of it, but before a transfer ends: until then no rate changes
  int under_way = 0;                  // transfers that SimGrid is running
  std::vector<Transfer*> asked = {};  // that SimGrid begins when its time reaches `now`
  simgrid::kernel::resource::Model* network = nullptr;  // runs the transfers; owned by the engine
  std::deque<Transfer> transfers = {};
  std::vector<Transfer*> free = {};
  sg4::ActivityPtr just_finished = {};
  std::int64_t events = 0;

  Platform() : engine(new_engine()) {
    sg4::NetZone* const root =
        engine->get_netzone_root();  // from SimGrid 4.0 on there is one; before, the first zone becomes it
    zone = new ChosenRoute("network");
    if (root != nullptr) zone->set_parent(root->get_impl());
    source = new_host(*zone->get_iface(), "source");
    sink = new_host(*zone->get_iface(), "sink");
    for (simgrid::kernel::resource::Model* model : engine->get_all_models())
      if (model->get_name().starts_with("Network")) network = model;
    FS_ASSERT(network != nullptr);
    sg4::Comm::on_completion_cb([this](const sg4::Activity& activity) {
      if (activity.get_state() == sg4::Activity::State::FINISHED) completed(activity.get_data<Transfer>());
    });
  }
  ~Platform() {
    just_finished.reset();
    for (Transfer& transfer : transfers) transfer.activity.reset();
  }

  const Route& route_of(const Transfer& transfer) const { return routes[static_cast<std::size_t>(transfer.route)]; }
  LinkUsers& users_of(int link) { return users[static_cast<std::size_t>(link)]; }
  Transfer& new_transfer(int route, double parts, Token token) {
    if (free.empty()) free.push_back(&transfers.emplace_back(Transfer{.number = static_cast<std::uint32_t>(transfers.size())}));
    Transfer& transfer = *free.back();
    free.pop_back();
    transfer.route = route, transfer.parts = parts, transfer.token = token;
    return transfer;
  }
  void transfer(int route, double parts, Token token) {
    Transfer& transfer = new_transfer(route, parts, token);
    bool shares = false;
    for (const int link : route_of(transfer).crossed) {
      LinkUsers& on = users_of(link);
      if (on.alone != nullptr && on.alone->end - now >= kPrecision) share(*on.alone);
      shares |= on.count++ > 0;
    }
    if (shares) return give(transfer);
    transfer.alone = true;
    transfer.since = now, transfer.end = now + parts / route_of(transfer).alone;
    for (const int link : route_of(transfer).crossed) users_of(link).alone = &transfer;
    ends.plan(transfer.end, kTransfer, transfer.number, ++transfer.version);
  }
  // Another transfer begins on a link of this one.
  void share(Transfer& transfer) {
    transfer.parts = std::max(0.0, transfer.parts - route_of(transfer).alone * (now - transfer.since));
    leave_alone(transfer);
    give(transfer);
  }
  void leave_alone(Transfer& transfer) {
    transfer.alone = false;
    for (const int link : route_of(transfer).crossed)
      if (LinkUsers& on = users_of(link); on.alone == &transfer) on.alone = nullptr;
  }
  Token ended(Transfer& transfer) {
    if (transfer.alone) leave_alone(transfer);
    for (const int link : route_of(transfer).crossed) --users_of(link).count;
    free.push_back(&transfer);
    ++events;
    return transfer.token;
  }
  void plan_end(int worker) {
    Worker& w = workers[static_cast<std::size_t>(worker)];
    w.since = now;
    queue.plan(w.since + w.left / w.speed, kCompute, static_cast<std::uint32_t>(worker), ++w.version);
  }
  bool is_current(const Event& event) const {
    if (event.kind == kDelay) return true;
    if (event.kind == kCompute) return workers[event.which].busy && workers[event.which].version == event.version;
    return transfers[event.which].alone && transfers[event.which].version == event.version;
  }
  // When an event is due. As SimGrid does, transfers end that would within kPrecision from now.
  double due(const Event& event) const {
    return event.kind == kTransfer && event.time - now < kPrecision ? std::min(now, event.time) : event.time;
  }
  // The first event that is still current (drops outdated ones); null if no event is left.
  const Event* first() {
    for (player::EventQueue* each : {&queue, &ends})
      while (!each->empty() && !is_current(each->first())) each->take_first();
    if (ends.empty()) return queue.empty() ? nullptr : &queue.first();
    return !queue.empty() && queue.first().time <= std::max(now, due(ends.first())) ? &queue.first() : &ends.first();
  }
  // A transfer that shares a link with another one.
  void give(Transfer& transfer) {
    if (is_ahead())
      asked.push_back(&transfer);
    else
      begin(transfer);
  }
  void begin(Transfer& transfer) {
    const sg4::CommPtr comm = sg4::Comm::sendto_init(source, sink);
    const double whole = std::ceil(transfer.parts);
    comm->set_payload_size(static_cast<std::uint64_t>(whole));
    comm->set_data(&transfer);
    transfer.activity = comm;
    zone->choose(route_of(transfer).links);
    comm->start();
    network->get_started_action_set()->back().update_remains(whole - transfer.parts);
    ++under_way;
  }
  bool is_ahead() const { return now > sg4::Engine::get_clock(); }
  // SimGrid gets a single timer, that of the next event: its heap is slow with many timers.
  void set_timer() {
    const Event* next = asked.empty() ? first() : nullptr;
    const bool needed = next != nullptr || !asked.empty();
    const double time = next != nullptr ? due(*next) : now;
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
    for (Transfer* transfer : asked) begin(*transfer);
    asked.clear();
    double end = -1;
    int known = 0;  // transfers under way when `end` was found
    for (const Event* next = first(); next != nullptr; next = first()) {
      const double time = due(*next);
      if (time > now) {
        if (!asked.empty()) break;
        if (end < 0 || known != under_way) end = next_end(), known = under_way;
        if (time + kPrecision >= end) break;
      }
      const Event event = (next->kind == kTransfer ? ends : queue).take_first();
      now = std::max(now, time);
      listener->finished(token_of(event));
    }
    set_timer();
  }
  Token token_of(const Event& event) {
    if (event.kind == kTransfer) return ended(transfers[event.which]);
    ++events;
    if (event.kind == kDelay) return {event.which, event.version};
    workers[event.which].busy = false;
    return workers[event.which].token;
  }
  void completed(Transfer* transfer) {
    just_finished = std::move(transfer->activity);  // frees the one before
    --under_way;
    now = std::max(now, sg4::Engine::get_clock());
    listener->finished(ended(*transfer));
    set_timer();
  }
};

class SimGridClock final : public player::Clock {
 public:
  int add_link(BytesPerSecond capacity) override {
    FS_ASSERT(std::isfinite(capacity.value) && capacity.value > 0);
    Links& links = platform_.links;
    sg4::Link* link = new_link(*platform_.zone->get_iface(), std::to_string(links.size()), capacity.value * kPartsPerByte);
    links.push_back(link->get_impl());
    platform_.users.emplace_back();
    platform_.capacities.push_back(capacity.value * kPartsPerByte);
    return static_cast<int>(links.size()) - 1;
  }

  int add_route(const std::vector<int>& links) override {
    FS_ASSERT(!links.empty());
    Route route{.alone = std::numeric_limits<double>::infinity()};
    route.crossed = links;
    std::ranges::sort(route.crossed);
    const auto end = std::ranges::unique(route.crossed).begin();
    route.crossed.erase(end, route.crossed.end());
    for (const int link : links) route.links.push_back(platform_.links.at(static_cast<std::size_t>(link)));
    for (const int link : route.crossed) {
      const auto times = static_cast<double>(std::ranges::count(links, link));
      route.alone = std::min(route.alone, platform_.capacities[static_cast<std::size_t>(link)] / times);
    }
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
    platform_.transfer(route, static_cast<double>(std::llround(bytes * kPartsPerByte)), token);
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
