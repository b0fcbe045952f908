#include "exec/doctor/doctor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "exec/mesh/process_place.h"
#include "exec/mesh/socket.h"
#include "exec/nccl/nccl.h"

namespace foreshard {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30U;
constexpr std::int64_t kSpareFiles = 256;  // open files that a run needs besides two per process

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string in_gib(std::int64_t bytes) {
  const std::int64_t tenths = bytes * 10 / kGiB;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::optional<std::int64_t> number(const std::string& text) {
  std::istringstream in(text);
  std::int64_t value = 0;
  if (!(in >> value)) return {};
  return value;
}

class Examination {
 public:
  explicit Examination(const ExaminedMachine& around) : around_(around) {}

  std::vector<Finding> run() {
    look_at_launcher();
    look_at_rendezvous();
    look_at_links();
    look_at_memory();
    look_at_files();
    look_at_gpus();
    look_at_kernels();
    look_at_nccl();
    return std::move(findings_);
  }

 private:
  void tell(const char* topic, Health health, const std::string& found, const std::string& mend = "") {
    findings_.push_back({topic, health, found, mend});
  }
  std::string word(const char* name) const {
    const char* found = around_.variable(name);
    return found ? found : "";
  }
  std::string path(const std::string& below) const { return around_.root + below; }
  int processes() const { return place_ ? place_->processes : 1; }

  // Whether some of the processes run on other machines, as far as the launcher tells it.
  bool several_machines() const {
    const auto here = number(word("OMPI_COMM_WORLD_LOCAL_SIZE")), torch = number(word("LOCAL_WORLD_SIZE")),
               nodes = number(word("SLURM_NNODES"));
    const std::string launcher = launcher_name(around_.variable);
    if (launcher == "torchrun") return torch && *torch < processes();
    if (launcher == "Open MPI") return here && *here < processes();
    return launcher == "srun" && nodes && *nodes > 1;
  }

  void look_at_launcher() {
    static const std::pair<const char*, const char*> pairs[] = {{"RANK", "WORLD_SIZE"},
                                                                {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                                {"PMI_RANK", "PMI_SIZE"},
                                                                {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (const auto& [own, all] : pairs)
      if (word(own).empty() != word(all).empty()) {
        const std::string there = word(own).empty() ? all : own, lacks = word(own).empty() ? own : all;
        tell("launcher", Health::Note, there + " is set, " + lacks + " is not: not looked at", "set both, or neither");
      }
    try {
      place_ = process_place(around_.variable);
    } catch (const Error& error) {
      return tell("launcher", Health::Wrong, error.what(), "let the launcher set it, or set both variables of the pair");
    }
    if (!place_) return tell("launcher", Health::Good, "none: all ranks are threads of one process");
    tell("launcher", Health::Good,
         launcher_name(around_.variable) + ": process " + std::to_string(place_->process) + " of " +
             std::to_string(place_->processes));
    if (job_token(around_.variable).empty())
      tell("job", Health::Note, "no word: a run of the same plan on the same port would mix with this one",
           "set FORESHARD_JOB to any word, the same in all processes");
    else
      tell("job", Health::Good, word("FORESHARD_JOB").empty() ? "the launcher's number" : "FORESHARD_JOB");
  }

  void look_at_rendezvous() {
    if (!place_) return;
    const std::string where = place_->address + " port " + std::to_string(place_->port);
    const bool given = !word("MASTER_ADDR").empty() || !word("SLURM_LAUNCH_NODE_IPADDR").empty();
    if (!given && several_machines())
      return tell("rendezvous", Health::Wrong, where + ", but the processes are on several machines",
                  "set MASTER_ADDR to the address of the machine of process 0, in all processes");
    if (place_->process != 0) return tell("rendezvous", Health::Good, where + ", where process 0 listens");
    const std::string why = around_.listen(place_->address, place_->port);
    if (why.empty() && several_machines() && around_.only_this_machine(place_->address))
      return tell("rendezvous", Health::Wrong, place_->address + " is a loopback address here: other machines cannot connect",
                  "set MASTER_ADDR to an address of the machine on which process 0 runs: " + addresses());
    if (why.empty()) return tell("rendezvous", Health::Good, where + ", free");
    const bool taken = why.find("in use") != std::string::npos;
    tell("rendezvous", Health::Wrong, why,
         taken ? "choose another MASTER_PORT, in all processes"
               : "set MASTER_ADDR to an address of the machine on which process 0 runs: " + addresses());
  }

  std::string addresses() const {
    std::string names;
    for (const auto& [name, speed] : links()) names += (names.empty() ? "that of " : ", ") + name;
    return names.empty() ? "it has no link" : names;
  }

  // The links that are up: name -> speed in Mbit/s, -1 if unknown.
  std::map<std::string, std::int64_t> links() const {
    std::map<std::string, std::int64_t> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path("/sys/class/net"), ignored)) {
      const std::string name = entry.path().filename();
      const std::string state = first_line((entry.path() / "operstate").string());
      if (name == "lo" || (state != "up" && state != "unknown")) continue;
      found[name] = number(first_line((entry.path() / "speed").string())).value_or(-1);
    }
    for (const auto& device : fs::directory_iterator(path("/sys/class/infiniband"), ignored))
      for (const auto& port : fs::directory_iterator(device.path() / "ports", ignored)) {
        if (first_line((port.path() / "state").string()).find("ACTIVE") == std::string::npos) continue;
        const auto rate = number(first_line((port.path() / "rate").string()));  // "200 Gb/sec (4X HDR)"
        found[device.path().filename().string() + "/" + port.path().filename().string()] = rate ? *rate * 1000 : -1;
      }
    return found;
  }

  void look_at_links() {
    std::string text;
    for (const auto& [name, speed] : links())
      text +=
          (text.empty() ? "" : ", ") + name + " " +
          (speed > 0 ? std::to_string(speed / 1000) + (speed % 1000 ? "." + std::to_string(speed % 1000 / 100) : "") + " Gbit/s"
                     : "of unknown speed");
    if (!text.empty()) return tell("links", Health::Good, text);
    if (several_machines())
      return tell("links", Health::Wrong, "none is up", "bring a network link up, or run all processes on this machine");
    tell("links", Health::Good, "only the loopback");
  }

  void look_at_memory() {
    std::ifstream file(path("/proc/meminfo"));
    std::int64_t available = -1;
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("MemAvailable:")) available = number(line.substr(13)).value_or(-1) * 1024;
    std::string text = available < 0 ? "unknown" : in_gib(available) + " available";
    const auto limit = number(first_line(path("/sys/fs/cgroup/memory.max")));
    const auto used = number(first_line(path("/sys/fs/cgroup/memory.current")));
    std::int64_t left = available;
    if (limit) {
      left = std::min(available < 0 ? *limit : available, *limit - used.value_or(0));
      text += ", " + in_gib(std::max<std::int64_t>(0, *limit - used.value_or(0))) + " left of the " + in_gib(*limit) +
              " of its group";
    }
    if (left >= 0 && left < kGiB / 4)
      return tell("memory", Health::Wrong, text,
                  "give the job more memory (srun --mem, docker run --memory), or run fewer ranks here");
    tell("memory", Health::Good, text);
  }

  void look_at_files() {
    const std::int64_t needed = std::int64_t{2} * processes() + kSpareFiles;
    const std::string limit =
        around_.open_files < 0 ? "no limit of open files" : std::to_string(around_.open_files) + " open files";
    if (around_.open_files >= 0 && around_.open_files < needed)
      tell("files", Health::Wrong, limit + "; " + std::to_string(processes()) + " processes need " + std::to_string(needed),
           "ulimit -n " + std::to_string(needed));
    else
      tell("files", Health::Good, limit);
    const std::int64_t shared = around_.shared_memory.value;
    if (shared >= kGiB / 4) return tell("shared memory", Health::Good, in_gib(shared) + " free in /dev/shm");
    const std::string text = shared < 0 ? "no /dev/shm" : in_gib(shared) + " free in /dev/shm";
    tell("shared memory", around_.needs_gpu ? Health::Wrong : Health::Note, text,
         "NCCL needs it between GPUs of one machine: docker run --shm-size=1g, or --ipc=host");
  }

  void look_at_gpus() {
    if (!around_.gpus.empty()) {
      std::string text;
      for (const std::string& gpu : around_.gpus) text += (text.empty() ? "" : ", ") + gpu;
      tell("GPUs", Health::Good, text);
      constexpr std::int64_t kLocked = 64 << 20;
      if (around_.locked_bytes >= 0 && around_.locked_bytes < kLocked)
        tell("locked memory", Health::Note, std::to_string(around_.locked_bytes >> 10) + " KiB",
             "InfiniBand needs more: ulimit -l unlimited");
      return;
    }
    tell("GPUs", around_.needs_gpu ? Health::Wrong : Health::Note, around_.no_gpus.empty() ? "none" : around_.no_gpus,
         "a run with --device host needs no GPU");
  }

  void look_at_kernels() {
    if (around_.kernels.empty()) return;
    tell(
        "kernels", around_.slow_kernels ? Health::Note : Health::Good, around_.kernels,
        around_.slow_kernels ? "not optimized: cmake --preset release && cmake --build build/release compiles them again" : "");
  }

  void look_at_nccl() {
    for (const auto& [file, words] : around_.nccl)
      tell("NCCL", file == around_.usable_nccl ? Health::Good : Health::Note, file + ": " + words,
           file == around_.usable_nccl ? "" : "not used; FORESHARD_NCCL=FILE names another");
    if (around_.usable_nccl.empty())
      tell("NCCL", around_.needs_gpu && processes() > 1 ? Health::Wrong : Health::Note, "none that can be used",
           "pip install nvidia-nccl-cu12 (or -cu13), or FORESHARD_NCCL=FILE; a run with --device host does not need it");
  }

  const ExaminedMachine& around_;
  std::optional<ProcessPlace> place_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> examine(const ExaminedMachine& around) { return Examination(around).run(); }

ExaminedMachine this_machine(const std::function<const char*(const char*)>& variable) {
  ExaminedMachine around{.variable = variable};
  around.listen = [](const std::string& address, int port) -> std::string {
    try {
      const ListeningSocket door(address, port);
      return "";
    } catch (const DeviceError& error) {
      return error.what();
    }
  };
  around.only_this_machine = [](const std::string& address) {
    try {
      return ListeningSocket(address, 0).only_this_machine();
    } catch (const DeviceError&) {  // `listen` says why
      return false;
    }
  };
  const auto limit = [](auto what) -> std::int64_t {
    rlimit found = {};
    if (getrlimit(what, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return -1;
    return static_cast<std::int64_t>(found.rlim_cur);
  };
  around.open_files = limit(RLIMIT_NOFILE), around.locked_bytes = limit(RLIMIT_MEMLOCK);
  std::error_code problem;
  const fs::space_info space = fs::space("/dev/shm", problem);
  if (!problem) around.shared_memory = {static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX))};
  for (const std::string& file : nccl::candidates(variable)) {
    try {
      around.nccl.emplace_back(file, "version " + nccl::version_text(nccl::Library(file).version()));
      if (around.usable_nccl.empty()) around.usable_nccl = file;
    } catch (const DeviceError& error) {
      around.nccl.emplace_back(file, error.what());
    }
  }
  return around;
}

}  // namespace foreshard
