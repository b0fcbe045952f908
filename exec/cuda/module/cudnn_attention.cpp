// Attention with cuDNN's graph API. The only file that includes its headers. libcudnn is opened at run time, and the JSON library that its
// headers can use is left out.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "exec/cuda/module/attention_library.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // declared by cudnn_frontend_shim.h, which looks up every function in it
}

namespace foreshard::gpu {

namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Uid : std::int64_t { kQ = 1, kK, kV, kContext, kLse, kDContext, kDq, kDk, kDv, kSeed, kOffset };

// An execution plan of cuDNN for one form of attention on one GPU. A null graph: cuDNN has none.
struct Prepared {
  int device = 0;
  AttentionCall form = {};  // without addresses
  std::shared_ptr<fe::graph::Graph> graph = {};
  std::string refusal = {};  // why there is no graph
  std::int64_t workspace = 0;
};

AttentionCall without_data(AttentionCall call) {
  for (AttentionArray* array : {&call.q, &call.k, &call.v, &call.context, &call.dcontext, &call.dq, &call.dk, &call.dv})
    array->data = nullptr;
  call.lse = call.random = nullptr;
  return call;
}

// Arrays of keys and values have a row per key, those of values and contexts the elements of a value head.
fe::graph::Tensor_attributes described(const AttentionCall& call, const AttentionArray& array, Uid uid) {
  const bool of_keys = uid == kK || uid == kV || uid == kDk || uid == kDv;
  const bool of_values = uid == kV || uid == kDv || uid == kContext || uid == kDContext;
  return fe::graph::Tensor_attributes()
      .set_uid(uid)
      .set_dim({call.samples, of_keys ? call.kv_heads : call.heads, of_keys ? call.keys : call.queries,
                of_values ? call.value_dim : call.dim})
      .set_stride({array.sample_step, array.head_step, array.row_step, 1});
}
fe::graph::Tensor_attributes described_lse(const AttentionCall& call) {
  return fe::graph::Tensor_attributes()
      .set_uid(kLse)
      .set_dim({call.samples, call.heads, call.queries, 1})
      .set_stride({call.heads * call.queries, call.queries, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}
fe::graph::Tensor_attributes described_random(Uid uid) {
  return fe::graph::Tensor_attributes()
      .set_uid(uid)
      .set_dim({1, 1, 1, 1})
      .set_stride({1, 1, 1, 1})
      .set_data_type(fe::DataType_t::INT64);
}
void put_out(const Tensor& tensor, const fe::graph::Tensor_attributes& as) {
  tensor->set_output(true).set_uid(as.get_uid()).set_dim(as.get_dim()).set_stride(as.get_stride());
}

std::shared_ptr<fe::graph::Graph> drawn(const AttentionCall& call) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(call.dtype == DType::BF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const Tensor q = graph->tensor(described(call, call.q, kQ)), k = graph->tensor(described(call, call.k, kK)),
               v = graph->tensor(described(call, call.v, kV));
  const auto draw_dropout = [&](auto& attributes) {
    if (call.dropped > 0)
      attributes.set_dropout(call.dropped, graph->tensor(described_random(kSeed)), graph->tensor(described_random(kOffset)));
  };
  if (!call.backward) {
    auto attributes = fe::graph::SDPA_attributes()
                          .set_name("attention")
                          .set_generate_stats(true)
                          .set_causal_mask(call.causal)
                          .set_attn_scale(call.scale);
    if (call.window > 0) attributes.set_diagonal_band_left_bound(static_cast<int>(call.window));
    draw_dropout(attributes);
    const auto [context, lse] = graph->sdpa(q, k, v, attributes);
    put_out(context, described(call, call.context, kContext));
    put_out(lse, described_lse(call));
    lse->set_data_type(fe::DataType_t::FLOAT);
    return graph;
  }
  const Tensor context = graph->tensor(described(call, call.context, kContext)),
               dcontext = graph->tensor(described(call, call.dcontext, kDContext)), lse = graph->tensor(described_lse(call));
  auto attributes = fe::graph::SDPA_backward_attributes()
                        .set_name("attention gradient")
                        .set_causal_mask(call.causal)
                        .set_attn_scale(call.scale)
                        .set_deterministic_algorithm(!call.any_order);
  if (call.window > 0) attributes.set_diagonal_band_left_bound(static_cast<int>(call.window));
  draw_dropout(attributes);
  const auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, context, dcontext, lse, attributes);
  put_out(dq, described(call, call.dq, kDq));
  put_out(dk, described(call, call.dk, kDk));
  put_out(dv, described(call, call.dv, kDv));
  return graph;
}

class CudnnAttention : public AttentionLibrary {
 public:
  ~CudnnAttention() override {
    for (const auto& [device, handle] : handles_) fe::detail::destroy_handle(handle);
  }
  std::string version() const override {
    const std::size_t version = fe::detail::get_backend_version();
    return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100);
  }
  std::optional<Bytes> workspace(const AttentionCall& call, int device) override {
    const std::lock_guard lock(mutex_);
    const Prepared& prepared = this->prepared(call, device);
    if (!prepared.graph) return {};
    return Bytes{prepared.workspace};
  }
  std::string refusal(const AttentionCall& call, int device) override {
    const std::lock_guard lock(mutex_);
    return this->prepared(call, device).refusal;
  }
  AttentionAnswer answer_for(const AttentionCall& call, const std::string& device, int capability) override {
    try {
      const auto properties = std::make_shared<fe::DeviceProperties>();
      if (fe::error_t status = properties->deserialize({device.begin(), device.end()}); status.is_bad())
        return {.refusal = status.get_message()};
      const std::shared_ptr<fe::graph::Graph> graph = drawn(without_data(call));
      graph->set_device_properties(properties).set_sm_version(capability);
      std::int64_t workspace = 0;
      const std::function<fe::error_t()> steps[] = {[&] { return graph->validate(); },
                                                    [&] { return graph->build_operation_graph(); },
                                                    [&] { return graph->create_execution_plans({fe::HeurMode_t::A}); },
                                                    [&] { return graph->check_support(); },
                                                    [&] { return graph->build_plans(); },
                                                    [&] { return graph->get_workspace_size(workspace); }};
      for (const auto& step : steps)
        if (fe::error_t status = step(); status.is_bad()) return {.refusal = status.get_message()};
      return {.workspace = Bytes{workspace}};
    } catch (const std::exception& problem) {
      return {.refusal = problem.what()};
    }
  }
  std::string run(const AttentionCall& call, int device, std::byte* workspace, void* stream) override {
    const std::lock_guard lock(mutex_);  // only one thread at a time may use a handle
    const Prepared& prepared = this->prepared(call, device);
    if (!prepared.graph) return prepared.refusal;
    const cudnnHandle_t handle = handles_.at(device);
    if (fe::detail::set_stream(handle, static_cast<cudaStream_t>(stream)) != CUDNN_STATUS_SUCCESS)
      return "cudnnSetStream failed";
    std::unordered_map<std::int64_t, void*> data = {
        {kQ, call.q.data}, {kK, call.k.data}, {kV, call.v.data}, {kContext, call.context.data}, {kLse, call.lse}};
    if (call.backward)
      data.insert({{kDContext, call.dcontext.data}, {kDq, call.dq.data}, {kDk, call.dk.data}, {kDv, call.dv.data}});
    if (call.dropped > 0) data.insert({{kSeed, call.random}, {kOffset, call.random + sizeof(std::int64_t)}});
    try {
      fe::error_t status = prepared.graph->execute(handle, data, workspace);
      return status.is_good() ? "" : status.get_message();
    } catch (const std::exception& problem) {
      return problem.what();
    }
  }

 private:
  const Prepared& prepared(const AttentionCall& call, int device) {
    const AttentionCall form = without_data(call);
    for (const Prepared& one : all_)
      if (one.device == device && one.form == form) return one;
    Prepared& made = all_.emplace_back(Prepared{.device = device, .form = form});
    try {
      made.refusal = build(made);
    } catch (const std::exception& problem) {  // the frontend finds no libcudart, for example
      made.refusal = problem.what();
    }
    return made;
  }
  // Why there is no graph; empty: there is.
  std::string build(Prepared& made) {
    if (!handles_.contains(made.device)) {
      cudnnHandle_t handle = nullptr;
      if (fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS) return "cudnnCreate failed";
      handles_[made.device] = handle;
    }
    const std::shared_ptr<fe::graph::Graph> graph = drawn(made.form);
    if (fe::error_t status = graph->build(handles_.at(made.device), {fe::HeurMode_t::A}); status.is_bad())
      return status.get_message();
    if (fe::error_t status = graph->get_workspace_size(made.workspace); status.is_bad()) return status.get_message();
    made.graph = graph;
    return "";
  }

  std::mutex mutex_;
  std::map<int, cudnnHandle_t> handles_;
  std::vector<Prepared> all_;
};

}  // namespace

}  // namespace foreshard::gpu

extern "C" __attribute__((visibility("default"))) foreshard::gpu::AttentionLibrary* foreshard_attention_library() {
  cudnn_frontend::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  return cudnn_frontend::cudnn_dlhandle ? new foreshard::gpu::CudnnAttention : nullptr;
}
