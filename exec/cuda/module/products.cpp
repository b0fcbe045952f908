#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>

#include "core/base/error.h"
#include "exec/cuda/module/cuda_runtime.h"
#include "exec/cuda/product_form.h"

namespace foreshard::gpu {

namespace {

void expect(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(call, cublasLtGetStatusName(status));
}

cudaDataType_t data_type(DType dtype, Float8 format = Float8::E4M3) {
  switch (dtype) {
    case DType::F8: return format == Float8::E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
    case DType::F32:
    case DType::TF32: return CUDA_R_32F;
    case DType::BF16: return CUDA_R_16BF;
    case DType::F16: return CUDA_R_16F;
    case DType::F4:
    case DType::F64:
    case DType::I64:
    case DType::I32:
    case DType::U8: break;
  }
  throw DeviceError("cublasLtMatmul", std::string("a product of ") + name_of(dtype));
}

cublasComputeType_t compute_type(const Multiply& w, bool relaxed) {
  if (w.a.dtype == DType::TF32 || w.b.dtype == DType::TF32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return w.a.dtype == DType::F32 && !relaxed ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
}

// Sums::OfFactor sums over the columns of our a, which is the B of cuBLASLt (see Description), hence BGRADB.
cublasLtEpilogue_t epilogue_of(const Multiply& w) {
  switch (w.epilogue) {
    case Epilogue::Gelu: return w.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::GeluSlope: return w.sums == Sums::OfResult ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::None: break;
  }
  if (w.sums == Sums::OfFactor) return CUBLASLT_EPILOGUE_BGRADB;
  return w.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The descriptors of a product for cuBLASLt. It expects column-major matrices, and a row-major matrix is the transpose of a column-major
// one; so the product is described as c^T = op(b)^T op(a)^T. It is constant after construction, so several threads may use it.
class Description {
 public:
  Description(const Multiply& w, bool relaxed) {
    expect(cublasLtMatmulDescInit(&product_, compute_type(w, relaxed), CUDA_R_32F), "cublasLtMatmulDescInit");
    set(CUBLASLT_MATMUL_DESC_TRANSA, w.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, w.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(w));
    if (const void* vector = w.bias ? w.bias : w.sums_to) {
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(w.c.dtype));
    }
    if (w.aux) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, w.aux);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, w.aux_row);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type(w.c.dtype));
    }
    if (w.a.dtype == DType::F8) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, w.b.scale);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, w.a.scale);
    }
    lay_out(a_, w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, w.count);
    lay_out(b_, w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, w.count);
    lay_out(c_, w.c, w.m, w.n, w.count);
  }
  cublasLtMatmulDesc_t product() const { return const_cast<cublasLtMatmulDesc_t>(&product_); }
  cublasLtMatrixLayout_t a() const { return const_cast<cublasLtMatrixLayout_t>(&a_); }
  cublasLtMatrixLayout_t b() const { return const_cast<cublasLtMatrixLayout_t>(&b_); }
  cublasLtMatrixLayout_t c() const { return const_cast<cublasLtMatrixLayout_t>(&c_); }

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t which, const Value& value) {
    expect(cublasLtMatmulDescSetAttribute(&product_, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  static void lay_out(cublasLtMatrixLayoutOpaque_t& layout, const Matrix& matrix, std::int64_t rows, std::int64_t columns,
                      std::int64_t count) {
    expect(cublasLtMatrixLayoutInit(&layout, data_type(matrix.dtype, matrix.format), static_cast<std::uint64_t>(columns),
                                    static_cast<std::uint64_t>(rows), matrix.row),
           "cublasLtMatrixLayoutInit");
    const auto batches = static_cast<std::int32_t>(count);
    expect(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches),
           "cublasLtMatrixLayoutSetAttribute");
    expect(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.step,
                                            sizeof matrix.step),
           "cublasLtMatrixLayoutSetAttribute");
  }

  cublasLtMatmulDescOpaque_t product_ = {};
  cublasLtMatrixLayoutOpaque_t a_ = {}, b_ = {}, c_ = {};
};

cublasLtMatmulAlgo_t of(const Algorithm& algorithm) {
  cublasLtMatmulAlgo_t words = {};
  static_assert(sizeof words.data == sizeof algorithm.words);
  std::copy(algorithm.words.begin(), algorithm.words.end(), words.data);
  return words;
}

int selected() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

std::vector<Algorithm> ask(cublasLtHandle_t handle, const Multiply& w, Bytes workspace, int most, bool relaxed) {
  const Description description(w, relaxed);
  const ProductForm form = form_of(w, 0);
  cublasLtMatmulPreferenceOpaque_t wish = {};
  expect(cublasLtMatmulPreferenceInit(&wish), "cublasLtMatmulPreferenceInit");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    expect(cublasLtMatmulPreferenceSetAttribute(&wish, which, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace.value));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, form.b.aligned);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, form.a.aligned);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, form.c.aligned);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, form.end_aligned());
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, description.product(), description.a(), description.b(), description.c(),
                                     description.c(), &wish, most, found.data(), &count);
  std::vector<Algorithm> all;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
    if (found[static_cast<std::size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
    const auto& words = found[static_cast<std::size_t>(i)].algo.data;
    Algorithm& next = all.emplace_back(Algorithm{.relaxed = relaxed});
    std::copy(std::begin(words), std::end(words), next.words.begin());
  }
  return all;
}

}  // namespace

// Descriptions and answers of the heuristic are made once and then only read, so calls usually need only a shared lock.
struct Products::State {
  using Key = std::tuple<ProductForm, std::array<const void*, 5>, bool>;  // bias, aux, sums, scales; relaxed

  std::shared_mutex mutex;
  std::map<int, cublasLtHandle_t> handles = {};
  std::map<Key, std::unique_ptr<const Description>> descriptions = {};
  std::map<std::tuple<ProductForm, std::int64_t, int>, std::vector<Algorithm>> answers = {};  // workspace, most

  // The entry of the map; if there is none yet, `make` makes it.
  template <class Map, class Make>
  const typename Map::mapped_type& once(Map& map, const typename Map::key_type& key, const Make& make) {
    {
      const std::shared_lock lock(mutex);
      if (const auto known = map.find(key); known != map.end()) return known->second;
    }
    typename Map::mapped_type made = make();
    const std::unique_lock lock(mutex);
    return map.try_emplace(key, std::move(made)).first->second;
  }
  cublasLtHandle_t handle(int device) {
    {
      const std::shared_lock lock(mutex);
      if (const auto known = handles.find(device); known != handles.end()) return known->second;
    }
    const std::unique_lock lock(mutex);
    cublasLtHandle_t& known = handles[device];
    if (!known) expect(cublasLtCreate(&known), "cublasLtCreate");
    return known;
  }
};

Products::Products() : state_(std::make_unique<State>()) {}
Products::~Products() {
  for (const auto& [device, handle] : state_->handles) cublasLtDestroy(handle);
}
std::string Products::version() const { return "cuBLASLt " + std::to_string(cublasLtGetVersion()); }

std::vector<Algorithm> Products::algorithms(const Multiply& w, Bytes workspace, int most) {
  if (!wrong_form(w).empty()) return {};
  const int device = selected();
  const cublasLtHandle_t handle = state_->handle(device);
  return state_->once(state_->answers, {form_of(w, device), workspace.value, most}, [&] {
    std::vector<Algorithm> all = ask(handle, w, workspace, most, false);
    // Not every shape has a pedantic algorithm. The others do not use TF32 either.
    if (all.empty() && w.a.dtype == DType::F32) all = ask(handle, w, workspace, most, true);
    return all;
  });
}

bool Products::takes(const Multiply& w, const Algorithm& algorithm, Bytes workspace) {
  if (!wrong_form(w).empty()) return false;
  const Description description(w, algorithm.relaxed);
  const cublasLtMatmulAlgo_t words = of(algorithm);
  cublasLtMatmulHeuristicResult_t result = {};
  return cublasLtMatmulAlgoCheck(state_->handle(selected()), description.product(), description.a(), description.b(),
                                 description.c(), description.c(), &words, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= static_cast<std::size_t>(workspace.value);
}

void Products::run(const Multiply& w, std::byte* workspace, Bytes bytes, void* stream) {
  if (!workspace) bytes = {};
  if (const std::string problem = wrong_form(w); !problem.empty()) throw DeviceError("cublasLtMatmul", problem);
  const int device = selected();
  const cublasLtHandle_t handle = state_->handle(device);
  Algorithm chosen;
  if (w.algorithm) {
    chosen = *w.algorithm;
  } else {
    const std::vector<Algorithm> first = algorithms(w, bytes, 1);
    if (first.empty())
      throw DeviceError("cublasLtMatmulAlgoGetHeuristic", "no algorithm for " + std::to_string(w.m) + " x " +
                                                              std::to_string(w.n) + " x " + std::to_string(w.k) + " in " +
                                                              name_of(w.a.dtype));
    chosen = first.front();
  }
  const std::unique_ptr<const Description>& description =
      state_->once(state_->descriptions, {form_of(w, device), {w.bias, w.aux, w.sums_to, w.a.scale, w.b.scale}, chosen.relaxed},
                   [&] { return std::make_unique<const Description>(w, chosen.relaxed); });
  const cublasLtMatmulAlgo_t algorithm = of(chosen);
  expect(cublasLtMatmul(handle, description->product(), &w.alpha, w.b.data, description->a(), w.a.data, description->b(),
                        &w.beta, w.c.data, description->c(), w.c.data, description->c(), &algorithm, workspace,
                        static_cast<std::size_t>(bytes.value), static_cast<cudaStream_t>(stream)),
         "cublasLtMatmul");
}

}  // namespace foreshard::gpu
