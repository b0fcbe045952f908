// The GPU catalogue: topologies/gpus/*.json.
#include <algorithm>
#include <map>
#include <mutex>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/cluster/cluster.h"
#include "core/cluster/cluster_json.h"

namespace foreshard {

namespace {
const std::vector<std::string> kPeaks = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4", "vector_fp32"};

FlopsPerSecond Gpu::*peak_member(const std::string& key) {
  if (key == "fp64") return &Gpu::fp64;
  if (key == "fp32") return &Gpu::fp32;
  if (key == "tf32") return &Gpu::tf32;
  if (key == "fp16") return &Gpu::fp16;
  if (key == "bf16") return &Gpu::bf16;
  if (key == "fp8") return &Gpu::fp8;
  if (key == "nvfp4") return &Gpu::nvfp4;
  return &Gpu::vector_fp32;
}

FlopsPerSecond flops_in_bounds(const JsonReader& json) {
  const FlopsPerSecond rate = json.as_flops();
  if (rate.value > 1e18) json.fail("a peak of at most 1 EFLOP/s; 0 or absent: not supported");
  return rate;
}
}  // namespace

const std::vector<std::string>& gpu_architectures() {
  static const std::vector<std::string> names = {"volta", "ampere", "ada",   "hopper", "blackwell", "turing", "pascal",
                                                 "cdna",  "rdna",   "gaudi", "tpu",    "neuron",    "host",   "other"};
  return names;
}

Gpu read_gpu(const JsonReader& json) {
  json.only({"name", "architecture", "source", "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4", "vector_fp32", "memory",
             "memory_bandwidth", "l2_cache", "sm_count", "clock_ghz", "launch_overhead", "power_watts", "flash_attention"});
  Gpu gpu;
  gpu.name = json.at("name").as_string();
  if (gpu.name.empty()) json.at("name").fail("a name");
  gpu.architecture = json.at("architecture").as_choice(gpu_architectures());
  if (const auto text = json.find("source")) gpu.source = text->as_string();
  for (const std::string& key : kPeaks)
    if (const auto rate = json.find(key)) gpu.*peak_member(key) = flops_in_bounds(*rate);
  for (const char* key : {"fp32", "vector_fp32"}) {
    const JsonReader rate = json.at(key);
    if (!(rate.as_flops().value >= 1e9)) rate.fail("a peak of at least 1 GFLOP/s: every GPU computes in fp32");
  }
  gpu.memory = bytes_between(json.at("memory"), {1 << 20}, {std::int64_t{1} << 50}, "a memory of 1 MiB to 1 PiB");
  gpu.memory_bandwidth = link_bandwidth(json.at("memory_bandwidth"));
  if (const auto size = json.find("l2_cache"))
    gpu.l2_cache = bytes_between(*size, {0}, {std::int64_t{1} << 40}, "at most 1 TiB");
  gpu.sm_count = static_cast<int>(json.at("sm_count").as_int(1, 100000));
  if (const auto clock = json.find("clock_ghz")) gpu.clock_ghz = clock->as_double(0, 100);
  if (const auto time = json.find("launch_overhead")) gpu.launch_overhead = short_time(*time);
  if (const auto watts = json.find("power_watts")) gpu.power_watts = watts->as_double(0, 1e6);
  if (const auto flash = json.find("flash_attention")) gpu.flash_attention = flash->as_bool();
  return gpu;
}

void write_gpu(JsonWriter& out, const Gpu& gpu) {
  out.begin_object().field("name", gpu.name).field("architecture", gpu.architecture).field("source", gpu.source);
  for (const std::string& key : kPeaks) out.field(key, (gpu.*peak_member(key)).value);
  out.field("memory", gpu.memory.value).field("memory_bandwidth", gpu.memory_bandwidth.value);
  out.field("l2_cache", gpu.l2_cache.value).field("sm_count", gpu.sm_count).field("clock_ghz", gpu.clock_ghz);
  out.field("launch_overhead", gpu.launch_overhead.value).field("power_watts", gpu.power_watts);
  out.field("flash_attention", gpu.flash_attention).end_object();
}

Gpu parse_gpu(const std::string& text, const std::string& file_name) { return read_gpu(JsonReader::parse(text, file_name)); }

// Files of the catalogue are read once: every measured row and every cluster asks for its GPU.
Gpu load_gpu(const std::string& name) {
  static std::mutex door;
  static std::map<std::string, Gpu> read;
  const std::string path = data_directory() + "/topologies/gpus/" + name + ".json";
  {
    const std::lock_guard guard(door);
    if (const auto found = read.find(path); found != read.end()) return found->second;
  }
  const std::vector<std::string> known = shipped("topologies/gpus");
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string near = nearest_name(name, known);
    throw Error("GPU", "", "'" + name + "'",
                near.empty() ? "a GPU of the catalogue" : "a GPU of the catalogue, perhaps '" + near + "'");
  }
  const JsonReader file = JsonReader::load(path);
  Gpu gpu = read_gpu(file);
  if (gpu.name != name) file.at("name").fail("\"" + name + "\", the name of the file");
  const std::lock_guard guard(door);
  return read.try_emplace(path, std::move(gpu)).first->second;
}

std::string to_json(const Gpu& gpu) {
  JsonWriter out;
  write_gpu(out, gpu);
  return out.text();
}

// Fallbacks: nvfp4 -> fp8 -> bf16 -> fp16 -> fp32; fp16, bf16, tf32 -> fp32 -> vector_fp32. Without fp64 hardware, fp64 runs at
// 1/64 of fp32, as on consumer boards.
FlopsPerSecond peak(const Gpu& gpu, DType type) {
  const auto first = [](FlopsPerSecond a, FlopsPerSecond b) { return a.value > 0 ? a : b; };
  const FlopsPerSecond fp32 = first(gpu.fp32, gpu.vector_fp32);
  switch (type) {
    case DType::F64: return first(gpu.fp64, fp32 * (1.0 / 64));
    case DType::F32: return fp32;
    case DType::TF32: return first(gpu.tf32, fp32);
    case DType::BF16: return first(gpu.bf16, fp32);
    case DType::F16: return first(gpu.fp16, fp32);
    case DType::F8: return first(gpu.fp8, first(gpu.bf16, first(gpu.fp16, fp32)));
    case DType::F4: return first(gpu.nvfp4, peak(gpu, DType::F8));
    case DType::I64:
    case DType::I32:
    case DType::U8: return gpu.vector_fp32;
  }
  return fp32;
}

}  // namespace foreshard
