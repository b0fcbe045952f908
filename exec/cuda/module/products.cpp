#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "exec/cuda/module/cuda_runtime.h"
#include "exec/cuda/product_form.h"

namespace foreshard::gpu {

namespace {

void expect(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw DeviceError(call, cublasLtGetStatusName(status));
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::TF32: return CUDA_R_32F;
    case DType::BF16: return CUDA_R_16BF;
    case DType::F16: return CUDA_R_16F;
    case DType::F64:
    case DType::F8:
    case DType::I64:
    case DType::I32:
    case DType::U8: break;
  }
  throw DeviceError("cublasLtMatmul", std::string("a product of ") + name_of(dtype));
}

cublasComputeType_t compute_type(const Multiply& w) {
  if (w.a.dtype == DType::TF32 || w.b.dtype == DType::TF32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return w.a.dtype == DType::F32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
}

// Row-major matrices are the transposed column-major ones, so c^T = op(b)^T op(a)^T is asked for.
struct Layout {
  cublasLtMatrixLayout_t handle = nullptr;
  Layout(const Matrix& matrix, std::int64_t rows, std::int64_t columns, std::int64_t count) {
    expect(cublasLtMatrixLayoutCreate(&handle, data_type(matrix.dtype), static_cast<std::uint64_t>(columns),
                                      static_cast<std::uint64_t>(rows), matrix.row),
           "cublasLtMatrixLayoutCreate");
    const auto batches = static_cast<std::int32_t>(count);
    expect(cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches),
           "cublasLtMatrixLayoutSetAttribute");
    expect(
        cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.step, sizeof matrix.step),
        "cublasLtMatrixLayoutSetAttribute");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(handle); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
};

struct Description {
  cublasLtMatmulDesc_t handle = nullptr;
  Description(const Multiply& w, cublasComputeType_t compute) {
    expect(cublasLtMatmulDescCreate(&handle, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
    const cublasOperation_t first = w.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = w.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, first);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second);
    if (!w.bias) return;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, w.bias);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(w.c.dtype));
  }
  ~Description() { cublasLtMatmulDescDestroy(handle); }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t which, const Value& value) {
    expect(cublasLtMatmulDescSetAttribute(handle, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
};

}  // namespace

struct Products::State {
  std::mutex mutex;
  std::map<int, cublasLtHandle_t> handles = {};
  struct Choice {
    cublasLtMatmulAlgo_t algorithm;
    cublasComputeType_t compute;
  };
  std::map<ProductForm, Choice> choices = {};

  cublasLtHandle_t handle(int device) {
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

namespace {

bool choose(cublasLtHandle_t handle, const Multiply& w, const ProductForm& form, Bytes bytes, cublasComputeType_t compute,
            cublasLtMatmulAlgo_t& algorithm) {
  const Description description(w, compute);
  const Layout a(w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, w.count);
  const Layout b(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, w.count), c(w.c, w.m, w.n, w.count);
  cublasLtMatmulPreference_t wish = nullptr;
  expect(cublasLtMatmulPreferenceCreate(&wish), "cublasLtMatmulPreferenceCreate");
  const auto size = static_cast<std::uint64_t>(bytes.value);
  const std::uint32_t first = form.b.aligned, second = form.a.aligned, result = form.c.aligned, epilogue = form.epilogue();
  cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &size, sizeof size);
  cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &first, sizeof first);
  cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &second, sizeof second);
  cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &result, sizeof result);
  cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &epilogue, sizeof epilogue);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, description.handle, b.handle, a.handle, c.handle,
                                                               c.handle, wish, 1, &found, &count);
  cublasLtMatmulPreferenceDestroy(wish);
  algorithm = found.algo;
  return status == CUBLAS_STATUS_SUCCESS && count > 0;
}

}  // namespace

void Products::run(const Multiply& w, std::byte* workspace, Bytes bytes, void* stream) {
  int device = 0;
  cudaGetDevice(&device);
  if (!workspace) bytes = {};
  const std::unique_lock lock(state_->mutex);
  const cublasLtHandle_t handle = state_->handle(device);
  const ProductForm form = form_of(w, device);
  auto known = state_->choices.find(form);
  if (known == state_->choices.end()) {
    State::Choice choice = {.algorithm = {}, .compute = compute_type(w)};
    if (!choose(handle, w, form, bytes, choice.compute, choice.algorithm)) {
      // fp32 without TF32 all the same; pedantic forms are not there for every shape.
      choice.compute = choice.compute == CUBLAS_COMPUTE_32F_PEDANTIC ? CUBLAS_COMPUTE_32F : choice.compute;
      if (!choose(handle, w, form, bytes, choice.compute, choice.algorithm))
        throw DeviceError("cublasLtMatmulAlgoGetHeuristic", "no algorithm for " + std::to_string(w.m) + " x " +
                                                                std::to_string(w.n) + " x " + std::to_string(w.k) + " in " +
                                                                name_of(w.a.dtype));
    }
    known = state_->choices.emplace(form, choice).first;
  }
  const Description description(w, known->second.compute);
  const Layout a(w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, w.count);
  const Layout b(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, w.count), c(w.c, w.m, w.n, w.count);
  expect(cublasLtMatmul(handle, description.handle, &w.alpha, w.b.data, b.handle, w.a.data, a.handle, &w.keep, w.c.data,
                        c.handle, w.c.data, c.handle, &known->second.algorithm, workspace,
                        static_cast<std::size_t>(bytes.value), static_cast<cudaStream_t>(stream)),
         "cublasLtMatmul");
}

}  // namespace foreshard::gpu
