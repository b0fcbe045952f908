#include "exec/team.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "exec/checkpoint.h"
#include "exec/process_mesh.h"
#include "exec/tcp_communicator.h"

namespace foreshard {

Team::Team(const Plan& plan, const ExecuteOptions& options, const TrainingPoint& start)
    : plan_(plan), options_(options), ranks_(plan), mesh_(options.processes), random_samples_(start.seed), meetings_(stop_) {
  const InterpreterOptions common{.runs = options.steps,
                                  .first_step = start.step,
                                  .first_sample = start.samples,
                                  .seed = start.seed,
                                  .optimizer = options.optimizer,
                                  .samples = options.samples ? options.samples : &random_samples_,
                                  .checks = options.checks,
                                  .before = options.before};
  if (mesh_) first_rank_ = mesh_->first_rank(mesh_->process());
  const std::int32_t end = mesh_ ? mesh_->first_rank(mesh_->process() + 1) : ranks_.count();
  for (std::int32_t r = first_rank_; r < end; ++r) {
    auto member = std::make_unique<Member>();
    member->device = std::make_unique<HostDevice>(stop_, options.time == TimeMode::Emulated ? &alone_ : nullptr);
    member->communicator = communicator({r});
    member->interpreter =
        std::make_unique<Interpreter>(plan, ranks_, RankId{r}, *member->device, *member->communicator, stop_, common);
    fill_initial_state(plan, ranks_, {r}, member->interpreter->memory(), start.seed);
    members_.push_back(std::move(member));
  }
  if (!mesh_) meetings_.check();
  if (!options.resume.empty()) load_checkpoint(options.resume, plan, ranks_, memories());
  this->start();
}

std::unique_ptr<Communicator> Team::communicator(RankId rank) {
  if (mesh_) return std::make_unique<TcpCommunicator>(*mesh_, stop_, rank);
  return std::make_unique<ThreadCommunicator>(meetings_, rank);
}

void Team::start() {
  if (mesh_) mesh_->guard(&stop_);
  for (auto& member : members_) member->interpreter->open();
  for (auto& member : members_) member->thread = std::thread([this, &member] { work(*member); });
}

Team::~Team() {
  if (mesh_) mesh_->guard(nullptr);
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

void Team::work(Member& member) {
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
      for (int step = first; step < until; ++step) member.interpreter->issue(step);
      member.device->synchronize();
      done = until;
      const std::lock_guard lock(mutex_);
      if (++finished_ == members_.size()) changed_.notify_all();
    }
  } catch (const Stopped&) {  // the reason is told by whoever stopped
  }
  const std::lock_guard lock(mutex_);
  ++over_;
}

// All processes end a step together, or none does.
void Team::run(int first_step, int steps) {
  if (!mesh_) return run_here(first_step, steps);
  try {
    run_here(first_step, steps);
  } catch (const DeviceError& error) {
    mesh_->tell_failure(stop_.why().empty() ? error.what() : stop_.why());
    throw;
  }
  static_cast<void>(mesh_->all_gather(""));
}

void Team::run_here(int first_step, int steps) {
  {
    const std::lock_guard lock(mutex_);
    first_ = first_step, until_ = first_step + steps;
    finished_ = 0;
    changed_.notify_all();
  }
  watch();
  if (const std::string broken = broken_guard(); !broken.empty()) throw DeviceError("check of the guards", broken);
}

void Team::watch() {
  using Clock = std::chrono::steady_clock;
  std::int64_t ended = ended_steps();
  Clock::time_point moved = Clock::now();
  int idle = 0;  // looks in a row that saw nobody compute
  std::unique_lock lock(mutex_);
  while (finished_ < members_.size() && !stop_.raised()) {
    changed_.wait_for(lock, std::chrono::milliseconds(50));
    if (const std::int64_t now = ended_steps(); now != ended) {
      ended = now;
      moved = Clock::now();
    }
    const auto still = Clock::now() - moved;
    if (still < options_.patience) continue;
    idle = computes() ? 0 : idle + 1;
    if (idle >= 10 || still > options_.longest_compute) stop_.raise(who_hangs());
  }
  if (stop_.raised()) throw DeviceError("the run", stop_.why());
}

std::int64_t Team::ended_steps() const {
  std::int64_t sum = 0;
  for (const auto& member : members_) sum += member->interpreter->ended();
  if (!mesh_) return sum;
  mesh_->progress(sum, computes_);
  return sum + mesh_->others_ended();
}

// Whether some stream uses the processor, here or elsewhere.
bool Team::computes() {
  bool any = false;
  for (const auto& member : members_) any = member->device->works() || any;
  computes_ = any;
  return any || (mesh_ && mesh_->others_work());
}

// Who runs something without waiting for a partner is to blame; else everybody waits for somebody: name what for.
std::string Team::who_hangs() const {
  std::string waiting;
  for (const auto& member : members_)
    for (const Interpreter::Running& running : member->interpreter->running()) {
      const std::string name = member->interpreter->name(running.step);
      if (!running.communicates) return name + ": does not come to an end";
      if (waiting.size() < 1000) waiting += (waiting.empty() ? "" : "; ") + name;
    }
  return "no rank goes on; waiting for a partner: " + (waiting.empty() ? "none" : waiting);
}

bool Team::ended() {
  using namespace std::chrono_literals;
  for (int i = 0; i < 200; ++i) {
    {
      const std::lock_guard lock(mutex_);
      if (over_ == members_.size()) break;
    }
    std::this_thread::sleep_for(5ms);
  }
  return std::all_of(members_.begin(), members_.end(), [](const auto& member) { return member->device->ended_within(500ms); });
}

std::vector<const RankMemory*> Team::memories() const {
  std::vector<const RankMemory*> all;
  for (const auto& member : members_) all.push_back(&member->interpreter->memory());
  return all;
}

double Team::loss(int step) const {
  double sum = 0;
  if (!mesh_) {
    for (const auto& member : members_) sum += member->interpreter->loss(step);
    return sum;
  }
  std::vector<double> losses;  // [rank]: summed in the order of the ranks, as threads do
  for (const auto& member : members_) losses.push_back(member->interpreter->loss(step));
  std::string own(reinterpret_cast<const char*>(losses.data()), losses.size() * sizeof(double)), all;
  for (const std::string& part : mesh_->all_gather(own)) all += part;
  losses.resize(all.size() / sizeof(double));
  std::memcpy(losses.data(), all.data(), losses.size() * sizeof(double));
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

Bytes Team::workspace() const {
  Bytes sum = {};
  for (const auto& member : members_) sum += member->device->overhead();
  return sum;
}

std::string Team::broken_guard() const {
  for (std::size_t r = 0; r < members_.size(); ++r)
    if (const std::string block = members_[r]->interpreter->memory().broken_guard(); !block.empty())
      return "rank " + std::to_string(static_cast<std::size_t>(first_rank_) + r) + " wrote past " + block;
  return {};
}

}  // namespace foreshard
