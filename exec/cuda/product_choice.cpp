#include "exec/cuda/product_choice.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/json/json.h"
#include "exec/cuda/gpu_memory.h"

namespace foreshard::gpu {

// Times products on a stream of its own.
class ProductChoice::Timer {
 public:
  Timer(Runtime& runtime, int gpu) : runtime_(runtime), memory_(runtime), times_(runtime, gpu, true) {
    runtime.select(gpu);
    stream_ = runtime.open_stream(false);
    workspace_ = memory_.allocate(Space::Device, kMultiplyWorkspace);
  }
  ~Timer() { runtime_.close_stream(stream_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Returns the fastest candidate. Operands are filled with bytes 0x3C, about 0.01 in bf16 and fp32, 1 in fp16: with zeros the GPU would
  // draw less power and run faster.
  Algorithm quickest(Multiply product, const std::vector<Algorithm>& candidates) {
    const std::vector<ProductRange> ranges = ranges_of(product);
    fill(ranges, std::byte{0x3C});
    std::size_t best = 0;
    std::int64_t least = INT64_MAX;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      product.algorithm = &candidates[i];
      if (const std::int64_t time = time_of(product); time < least) best = i, least = time;
    }
    fill(ranges, std::byte{0});
    runtime_.synchronize(stream_);
    return candidates[best];
  }

 private:
  static constexpr int kCalls = 3;
  void fill(const std::vector<ProductRange>& ranges, std::byte with) {
    for (const ProductRange& range : ranges) runtime_.fill(range.begin, with, {range.end - range.begin}, stream_);
  }
  // Nanoseconds: the median of three runs, after one that loads the kernel.
  std::int64_t time_of(const Multiply& product) {
    std::array<std::int64_t, kCalls> times = {};
    runtime_.multiply(product, workspace_, kMultiplyWorkspace, stream_);
    for (std::int64_t& time : times) {
      runtime_.record(begin_, stream_);
      runtime_.multiply(product, workspace_, kMultiplyWorkspace, stream_);
      runtime_.record(end_, stream_);
      runtime_.synchronize(stream_);
      time = runtime_.nanoseconds(begin_, end_);
    }
    std::sort(times.begin(), times.end());
    return times[kCalls / 2];
  }

  Runtime& runtime_;
  GpuMemory memory_;
  EventPool times_;
  Event *begin_ = times_.take(), *end_ = times_.take();
  Stream* stream_ = nullptr;
  std::byte* workspace_ = nullptr;
};

ProductChoice::ProductChoice(Runtime& runtime, std::string path) : runtime_(runtime), path_(std::move(path)) {}

int ProductChoice::kind_of(int gpu) const { return kinds_[static_cast<std::size_t>(gpu)]; }

ProductFile::Row ProductChoice::row_of(const Multiply& product, int gpu) const {
  const Properties& of = gpus_[static_cast<std::size_t>(gpu)];
  return {of.device, of.products, text_of(form_of(product, 0))};
}

// Reads the file, once. If there is none, it counts as empty. If it has another format, a note says so, and nothing will be stored.
void ProductChoice::read() {
  if (std::exchange(asked_, true)) return;
  for (int gpu = 0; gpu < runtime_.devices(); ++gpu) {
    gpus_.push_back(runtime_.properties(gpu));
    const auto alike = [&](const Properties& other) { return other.device == gpus_.back().device; };
    kinds_.push_back(static_cast<int>(std::find_if(gpus_.begin(), gpus_.end(), alike) - gpus_.begin()));
  }
  try {
    std::error_code problem;
    if (std::filesystem::exists(path_, problem)) known_ = parse_product_file(read_file(path_), path_);
  } catch (const Error& wrong) {
    notes_.push_back(std::string(wrong.what()) + "; algorithms of products are chosen without it and not kept");
    path_.clear();
  }
}

void ProductChoice::use(const ProductFile::Row& row, const ProductForm& form, const Algorithm& algorithm) {
  used_[form] = decided_.rows[row] = algorithm;
  form_of_[row] = form;
}

void ProductChoice::decide(int gpu, const std::vector<Multiply>& products) {
  if (!asks()) return;
  read();
  std::unique_ptr<Timer> timer;
  for (const Multiply& product : products) {
    const ProductForm form = form_of(product, kind_of(gpu));
    if (used_.contains(form)) continue;
    const ProductFile::Row row = row_of(product, gpu);
    if (const auto kept = known_.rows.find(row); kept != known_.rows.end()) {
      const bool good = runtime_.takes(product, kept->second, kMultiplyWorkspace);
      if (good) use(row, form, kept->second);
      if (good) continue;
      wrong_.rows[row] = kept->second;
    }
    const std::vector<Algorithm> candidates = runtime_.algorithms(product, kMultiplyWorkspace, kCandidates);
    if (candidates.empty()) continue;
    if (!timer) timer = std::make_unique<Timer>(runtime_, gpu);
    use(row, form, timer->quickest(product, candidates));
    ++timed_, dirty_ = true;
  }
  if (std::exchange(dirty_, false)) keep();
}

// Stores the choices. Another process may have stored some in the meantime; those are used then.
void ProductChoice::keep() {
  if (path_.empty()) return;
  try {
    known_ = add_to_file(path_, decided_, wrong_);
    for (auto& [row, algorithm] : decided_.rows)
      if (const auto kept = known_.rows.find(row); kept != known_.rows.end())
        used_[form_of_.at(row)] = algorithm = kept->second;
  } catch (const Error& wrong) {
    notes_.push_back(std::string(wrong.what()) + "; the algorithms of products that were timed are not kept");
    path_.clear();
  }
}

std::string ProductChoice::text() const { return to_json(decided_); }

void ProductChoice::adopt(const std::vector<std::string>& of_processes) {
  ProductFile all;
  for (const std::string& text : of_processes) {
    const ProductFile told = parse_product_file(text, "a process of the run");
    all.rows.insert(told.rows.begin(), told.rows.end());
  }
  for (const auto& [row, algorithm] : all.rows)
    if (const auto form = form_of_.find(row); form != form_of_.end()) used_[form->second] = algorithm;
}

const Algorithm* ProductChoice::of(const Multiply& product, int gpu) const {
  if (used_.empty()) return nullptr;
  const auto found = used_.find(form_of(product, kind_of(gpu)));
  return found == used_.end() ? nullptr : &found->second;
}

}  // namespace foreshard::gpu
