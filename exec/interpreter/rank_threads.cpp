#include "exec/interpreter/rank_threads.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "exec/communicator/tcp_communicator.h"
#include "exec/data/checkpoint.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

using namespace std::chrono_literals;

// A hang is detected if no rank has used the processor in kIdleLooks consecutive checks. Then the threads get kLeave to end.
static constexpr auto kLook = 50ms;
static constexpr int kIdleLooks = 10;
static constexpr auto kLeave = 500ms, kLeaveLook = 5ms;

std::chrono::milliseconds RankThreads::longest_hang(const ExecuteOptions& options) {
  return options.patience + options.limits.first_use + kLook * (kIdleLooks + 1) + kLeave;
}

RankThreads::RankThreads(const Plan& plan, const ExecuteOptions& options, const TrainingPoint& start)
    : plan_(plan),
      options_(options),
      ranks_(plan_),
      routers_(routers_of(plan_)),
      mesh_(options.processes),
      random_samples_(start.seed),
      meetings_(stop_) {
  const InterpreterOptions common{.runs = options.steps,
                                  .first_step = start.step,
                                  .first_sample = start.samples,
                                  .seed = start.seed,
                                  .optimizer = options.optimizer,
                                  .samples = options.samples ? options.samples : &random_samples_,
                                  .checks = options.checks,
                                  .before = options.before,
                                  .routers = routers_};
  if (options.devices) devices_ = options.devices(stop_);
  if (mesh_) first_rank_ = mesh_->first_rank(mesh_->process());
  const std::int32_t end = mesh_ ? mesh_->first_rank(mesh_->process() + 1) : ranks_.count();
  for (std::int32_t r = first_rank_; r < end; ++r) {
    auto member = std::make_unique<Member>();
    equip(*member, {r});
    member->interpreter =
        std::make_unique<Interpreter>(plan_, ranks_, RankId{r}, *member->device, *member->communicator, stop_, common);
    fill_initial_state(plan_, ranks_, {r}, member->interpreter->memory(), start.seed);
    members_.push_back(std::move(member));
  }
  if (devices_)
    devices_->connect(), devices_->check();
  else if (!mesh_)
    meetings_.check();
  if (!options.resume.empty()) load_checkpoint(options.resume, plan_, ranks_, memories(), start, mesh_);
  for (const auto& member : members_)
    if (const Operand state = member->interpreter->loss_scale_state(); state.data) write_loss_scale(start.loss_scale, state);
  this->start();
}

void RankThreads::equip(Member& member, RankId rank) {
  std::mutex* alone = options_.time == TimeMode::Emulated ? &alone_ : nullptr;
  if (devices_) {
    member.device = devices_->device(rank, alone);
    member.communicator = devices_->communicator(rank, *member.device);
    return;
  }
  member.device = std::make_unique<HostDevice>(stop_, alone);
  if (mesh_)
    member.communicator = std::make_unique<TcpCommunicator>(*mesh_, stop_, rank);
  else
    member.communicator = std::make_unique<ThreadCommunicator>(meetings_, rank);
}

void RankThreads::start() {
  if (mesh_) mesh_->guard(&stop_);
  try {
    for (auto& member : members_) member->interpreter->open();
    for (auto& member : members_) member->thread = start_thread([this, &member] { work(*member); });
  } catch (const std::exception& problem) {  // some threads run
    stop_.raise(problem.what());
    close();
    throw;
  }
  if (mesh_) mesh_->ask([this] { return runs_now(); });
}

RankThreads::~RankThreads() { close(); }

void RankThreads::close() {
  if (mesh_) mesh_->ask({}), mesh_->guard(nullptr);
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  for (auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
    member->device.reset();
  }
}

void RankThreads::work(Member& member) {
  try {
    int done = 0;
    while (true) {
      int first = 0, until = 0;
      {
        std::unique_lock lock(mutex_);
        stop_.wait(lock, changed_, [&] { return closed_ || until_ > done; });
        if (closed_) break;
        first = first_, until = until_;
      }
      for (int step = first; step < until; ++step) member.interpreter->issue(step, step + 1 == options_.steps);
      member.device->synchronize();
      done = until;
      const std::lock_guard lock(mutex_);
      if (++finished_ == members_.size()) changed_.notify_all();
    }
  } catch (const Stopped&) {  // the reason is reported by the thread that raised the stop
  } catch (const std::exception& problem) {
    stop_.raise(problem.what());
  }
  const std::lock_guard lock(mutex_);
  ++over_;
  changed_.notify_all();
}

// The all_gather is a barrier: no process returns before all processes have ended the steps.
void RankThreads::run(int first_step, int steps) {
  if (!mesh_) return run_here(first_step, steps);
  try {
    run_here(first_step, steps);
  } catch (const std::exception& error) {
    mesh_->tell_failure(stop_.why().empty() ? error.what() : stop_.why());
    throw;
  }
  static_cast<void>(mesh_->all_gather(""));
}

void RankThreads::run_here(int first_step, int steps) {
  {
    const std::lock_guard lock(mutex_);
    first_ = first_step, until_ = first_step + steps;
    finished_ = 0;
    changed_.notify_all();
  }
  watch();
  if (const std::string broken = broken_guard(); !broken.empty()) throw DeviceError("check of the guards", broken);
}

void RankThreads::watch() {
  const auto clock = [this] { return options_.limits.now ? options_.limits.now() : std::chrono::steady_clock::now(); };
  std::int64_t ended = ended_steps();
  auto moved = clock();
  int idle = 0;  // number of consecutive checks in which no rank computed
  std::unique_lock lock(mutex_);
  while (finished_ < members_.size() && !stop_.raised()) {
    changed_.wait_for(lock, kLook);
    if (const std::int64_t now = ended_steps(); now != ended) {
      ended = now;
      moved = clock();
    }
    const auto still = clock() - moved;
    const auto more = first_run_ended() ? std::chrono::milliseconds(0) : options_.limits.first_use;
    if (still < options_.patience + more) continue;
    idle = computes() ? 0 : idle + 1;
    const bool asked = options_.cancel && *options_.cancel;
    const auto longest =
        asked ? std::min(options_.limits.longest_compute, options_.limits.longest_when_asked) : options_.limits.longest_compute;
    if (idle >= kIdleLooks || still > longest + more) stop_.raise(who_hangs(options_.patience + more));
  }
  if (stop_.raised()) stop_.rethrow("the run");
}

std::int64_t RankThreads::ended_steps() const {
  std::int64_t sum = 0;
  for (const auto& member : members_) sum += member->interpreter->ended();
  if (!mesh_) return sum;
  mesh_->progress({.ended = sum, .works = computes_, .running = runs_now()});
  return sum + mesh_->others_ended();
}

bool RankThreads::first_run_ended() const {
  return std::all_of(members_.begin(), members_.end(), [](const auto& member) {
    return member->interpreter->ended() >= static_cast<std::int64_t>(member->interpreter->steps().size());
  });
}

// Whether a stream has computed since the last call, in this process or another one.
bool RankThreads::computes() {
  bool any = false;
  for (const auto& member : members_) any = member->device->works() || any;
  computes_ = any;
  return any || (mesh_ && mesh_->others_work());
}

// An instruction that a rank of this process runs: preferably one that does not communicate.
MeshRunning RankThreads::runs_now() const {
  MeshRunning any;
  for (const auto& member : members_)
    for (const Interpreter::Running& running : member->interpreter->running()) {
      if (!any.name.empty() && running.communicates) continue;
      any = {.name = member->interpreter->name(running.step), .communicates = running.communicates};
      if (!running.communicates) return any;
    }
  return any;
}

// The reason of a hang. A rank, in any process, that runs an instruction without communication causes it. If there is none, all ranks wait
// for each other, and the reason lists the instructions in which they wait.
std::string RankThreads::who_hangs(std::chrono::milliseconds patience) const {
  std::vector<MeshRunning> all;
  for (const auto& member : members_)
    for (const Interpreter::Running& running : member->interpreter->running())
      all.push_back({.name = member->interpreter->name(running.step), .communicates = running.communicates});
  if (mesh_)
    for (MeshRunning& running : mesh_->others_running()) all.push_back(std::move(running));
  std::string waiting;
  for (const MeshRunning& running : all) {
    if (!running.communicates) return running.name + ": does not come to an end";
    if (waiting.size() < 1000) waiting += (waiting.empty() ? "" : "; ") + running.name;
  }
  return "no progress for " + std::to_string(patience.count()) +
         " ms; waiting for a partner: " + (waiting.empty() ? "none" : waiting);
}

bool RankThreads::ended(const std::string& why) {
  stop_.raise(why);
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (mesh_) mesh_->ask({});
  const auto over = [&] {
    {
      const std::lock_guard lock(mutex_);
      if (over_ != members_.size()) return false;
    }
    return std::all_of(members_.begin(), members_.end(), [](const auto& member) { return member->device->ended_within({}); });
  };
  // It counts checks instead of reading the clock, because while this process is suspended its threads cannot end.
  for (auto left = kLeave; left.count() > 0; left -= kLeaveLook) {
    if (over()) return true;
    std::this_thread::sleep_for(kLeaveLook);
  }
  return over();
}

std::vector<const RankMemory*> RankThreads::memories() const {
  std::vector<const RankMemory*> all(static_cast<std::size_t>(ranks_.count()));
  for (std::size_t i = 0; i < members_.size(); ++i)
    all[static_cast<std::size_t>(first_rank_) + i] = &members_[i]->interpreter->memory();
  return all;
}

namespace {

// What a rank reports of a step.
struct Told {
  double loss = 0;
  // with a dynamic loss scale: that of the first step, the exponent used in this step, 1 if the step was skipped
  double first_scale = 0, scale = 0, skips = 0;
  double stops = 0;  // 1: its process was asked to stop
};

}  // namespace

StepReport RankThreads::report(int step) const {
  StepReport report;
  Told first;
  std::size_t count = 0;  // number of ranks so far; losses are summed in the order of the ranks
  const auto hear = [&](const Told& told) {
    if (count == 0) first = told;
    report.loss += told.loss;
    report.stop_asked = report.stop_asked || told.stops != 0;
    if (told.scale != first.scale || told.skips != first.skips)
      throw DeviceError("the run", "rank " + std::to_string(count) + " has another loss scale than rank 0");
    ++count;
  };
  const bool stops = options_.cancel && *options_.cancel;  // read once for all ranks of this process, because it may change
  std::string own;
  for (const auto& member : members_) {
    const Interpreter& rank = *member->interpreter;
    const LossScaleState& scale = rank.loss_scale(step);
    const Told told{rank.loss(step), rank.first_loss_scale(), scale.used, scale.skips, stops ? 1.0 : 0.0};
    if (mesh_)
      own.append(reinterpret_cast<const char*>(&told), sizeof told);
    else
      hear(told);
  }
  if (mesh_)
    for (const std::string& part : mesh_->all_gather(own))
      for (std::size_t at = 0; at + sizeof(Told) <= part.size(); at += sizeof(Told)) {
        Told told;
        std::memcpy(&told, part.data() + at, sizeof told);
        hear(told);
      }
  if (!routers_.empty()) {
    for (const auto& member : members_) report.experts.add(member->interpreter->experts(step));
    if (mesh_) {
      const std::string counted = packed(std::exchange(report.experts, {}));
      for (const std::string& part : mesh_->all_gather(counted)) report.experts.add(counts_of(part, routers_.size()));
    }
  }
  if (count != static_cast<std::size_t>(ranks_.count()))
    throw DeviceError("the run",
                      std::to_string(count) + " ranks told of the step instead of " + std::to_string(ranks_.count()));
  if (first.first_scale > 0) report.loss_scale = std::ldexp(first.first_scale, static_cast<int>(first.scale));
  report.skipped = first.skips != 0;
  return report;
}

Bytes RankThreads::workspace() const {
  Bytes sum = {};
  for (const auto& member : members_) sum += member->device->overhead();
  return sum;
}

std::string RankThreads::broken_guard() const {
  for (std::size_t r = 0; r < members_.size(); ++r)
    if (const std::string block = members_[r]->interpreter->memory().broken_guard(); !block.empty())
      return "rank " + std::to_string(static_cast<std::size_t>(first_rank_) + r) + " wrote past " + block;
  return {};
}

}  // namespace foreshard
