// Runtimes that change what they are asked before they do it: every value that a call hands over has to matter.
#pragma once

#include <functional>

#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu {

template <class Call>
struct Bend {
  const char* name;
  std::function<void(Call&)> bend;
};

class BentProducts : public FakeRuntime {
 public:
  explicit BentProducts(const Bend<Multiply>& bend, bool eight_bits_only = false) : bend_(bend), only_(eight_bits_only) {}
  void multiply(const Multiply& product, std::byte* workspace, Bytes bytes, Stream* stream) override {
    Multiply bent = product;
    if (!only_ || bent.a.dtype == DType::F8) bend_.bend(bent);
    FakeRuntime::multiply(bent, workspace, bytes, stream);
  }

 private:
  const Bend<Multiply>& bend_;
  bool only_;
};

class BentAttention : public FakeRuntime {
 public:
  explicit BentAttention(const Bend<AttentionCall>& bend) : FakeRuntime({.library_attention = true}), bend_(bend) {}
  void attention(const AttentionCall& call, std::byte* workspace, Stream* stream) override {
    AttentionCall bent = call;
    bend_.bend(bent);
    FakeRuntime::attention(bent, workspace, stream);
  }

 private:
  const Bend<AttentionCall>& bend_;
};

}  // namespace foreshard::gpu
