// What a FakeRuntime's streams, events and graphs hold. Included by its own files only.
#pragma once

#include <map>

#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu {

inline constexpr const char* kFakeProduct = "cublasLtMatmul";

struct Event {
  int device = 0;
  bool timed = false;
  std::uint64_t wanted = 0, done = 0;
  std::map<const Stream*, std::uint64_t> clock = {};
  std::int64_t time = 0;
};

struct Graph {
  std::vector<std::function<void(Stream*)>> nodes = {};
};

struct Stream {
  struct Entry {
    std::function<void()> work = {};
    Event* event = nullptr;
    std::uint64_t value = 0;
    bool waits = false, in_graph = false;
    std::function<Meeting()> state = {};                // of a meeting; others may always go
    bool runs = false;                                  // a meeting that has begun
    std::uint64_t serial = 0;                           // in the order of all calls
    std::map<const Stream*, std::uint64_t> clock = {};  // of a record in a graph
  };
  FakeRuntime* runtime = nullptr;
  int device = 0, connection = 0;
  bool legacy = false, urgent = false, open = true;
  std::deque<Entry> queue = {};
  std::map<const Stream*, std::uint64_t> clock = {};
  std::unique_ptr<Graph> capture = {};
};

}  // namespace foreshard::gpu
