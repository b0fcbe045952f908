// foreshard doctor: shows what a run of several processes would use on this machine, and what is wrong.
#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "cli/parts/cuda.h"
#include "cli/program/verb.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "exec/cuda/load_cuda.h"
#include "exec/doctor/doctor.h"

namespace foreshard {

static const char* word(Health health) {
  switch (health) {
    case Health::Good: return "ok";
    case Health::Note: return "note";
    case Health::Wrong: return "wrong";
  }
  return "";
}

static std::string as_json(const std::vector<Finding>& findings, bool sound) {
  JsonWriter json;
  json.begin_object().field("runs", sound).key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().field("topic", finding.topic).field("health", word(finding.health)).field("found", finding.found);
    json.field("mend", finding.mend).end_object();
  }
  return json.end_array().end_object().text();
}

static std::string as_text(const std::vector<Finding>& findings, bool sound) {
  std::string text;
  const auto padded = [](std::string cell, std::size_t width) {
    cell.resize(std::max(cell.size(), width), ' ');
    return cell + "  ";
  };
  for (const Finding& finding : findings) {
    text += padded(word(finding.health), 5) + padded(finding.topic, 13) + finding.found + "\n";
    if (!finding.mend.empty()) text += padded("", 5) + padded("", 13) + "-> " + finding.mend + "\n";
  }
  return text + (sound ? "A run can start here.\n" : "A run would fail here.\n");
}

// The links over which a group of GPUs of this machine would communicate.
static std::string links_of(const std::vector<gpu::Properties>& gpus, std::size_t own) {
  if (gpus.size() < 2) return "";
  std::string numbers;
  for (std::size_t other = 0; other < gpus.size(); ++other)
    if (std::count(gpus[own].nvlinks.begin(), gpus[own].nvlinks.end(), gpus[other].bus) > 0)
      numbers += " " + std::to_string(other);
  return numbers.empty() ? ", PCIe to the others" : ", NVLink to" + numbers;
}

static void look_for_gpus(ExaminedMachine& around, const Arguments& arguments) {
  around.needs_gpu = arguments.choice("--device", "host", {"host", "cuda"}) == "cuda";
  try {
    const KernelBuild kernels = kernel_build();
    around.kernels = "for sm " + kernels.architectures + ", nvcc " + kernels.options;
    around.slow_kernels = !kernels.optimized();
  } catch (const DeviceError&) {  // load_cuda says the same
  }
  try {
    ExecuteOptions unused;
    const std::unique_ptr<gpu::Runtime> runtime = use_device(arguments.with("--device", "cuda"), unused);
    std::vector<gpu::Properties> all;
    for (int device = 0; device < runtime->devices(); ++device) all.push_back(runtime->properties(device));
    for (std::size_t device = 0; device < all.size(); ++device) {
      const gpu::Properties& found = all[device];
      around.gpus.push_back(std::to_string(device) + " " + found.device + ", " +
                            plain(static_cast<double>(runtime->free_memory(static_cast<int>(device)).value >> 20U) / 1024) +
                            " of " + plain(static_cast<double>(found.memory.value >> 20U) / 1024) + " GiB free (" +
                            found.driver + ", " + found.libraries + ")" + links_of(all, device));
    }
  } catch (const DeviceError& error) {
    around.no_gpus = error.what();
  }
}

static ExitCode run_doctor(const Arguments& arguments, const Console& console) {
  ExaminedMachine around = this_machine([](const char* name) -> const char* { return std::getenv(name); });
  look_for_gpus(around, arguments);
  const std::vector<Finding> findings = examine(around);
  const bool sound =
      std::none_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.health == Health::Wrong; });
  console.out << (arguments.flag("--json") ? as_json(findings, sound) : as_text(findings, sound));
  return sound ? ExitCode::Ok : ExitCode::DeviceFailure;
}

Verb doctor_verb() {
  return {.name = "doctor",
          .summary = "Tells what a run of several processes would use on this machine, and what is wrong.",
          .notes =
              "Start it as the run will be started: with the same launcher, variables and container. Ends with code 3 when a "
              "run would fail.",
          .examples = {"foreshard doctor --device cuda"},
          .options = {{.name = "--device", .value = "KIND", .help = "what the run is to use: host, or cuda (host)"},
                      {.name = "--json", .help = "print JSON", .group = "output"}},
          .run = run_doctor};
}

}  // namespace foreshard
