// The rules that the fake GPUs enforce, one by one: what the executor may not do, done by hand.
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/error.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu::fake_rules_test {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

void cast(FakeRuntime& runtime, Stream* stream, std::byte* from, std::byte* to) {
  const Operand x{from, 64, DType::F32}, y{to, 64, DType::F32};
  Launcher(runtime, stream, nullptr).elements(KernelId::cast_array, 64, CastArgs{.x = reads(x), .y = writes(y), .count = 64});
}

TEST(FakeRules, AnEventIsRecordedOnItsOwnGpu) {
  FakeRuntime runtime({.devices = 2});
  Event* first = runtime.make_event(false);  // a thread begins on GPU 0
  runtime.select(1);
  Event* second = runtime.make_event(false);
  Stream* stream = runtime.open_stream(false);
  EXPECT_EQ(refusal([&] { runtime.record(first, stream); }), "cudaEventRecord failed: cudaErrorInvalidResourceHandle");
  EXPECT_EQ(refusal([&] { runtime.record(second, stream); }), "");
  EXPECT_EQ(refusal([&] { runtime.wait(stream, first); }), "") << "streams wait for events of any GPU";
  runtime.synchronize(stream);
  runtime.close_stream(stream);
  for (Event* event : {first, second}) runtime.drop_event(event);
}

TEST(FakeRules, AThreadBeginsOnTheFirstGpuAndLaunchesOnTheOneItSelected) {
  FakeRuntime runtime({.devices = 2});
  runtime.select(1);
  Stream* stream = runtime.open_stream(false);
  std::byte* memory = runtime.allocate(Space::Device, {512});
  runtime.synchronize(runtime.legacy_stream());
  EXPECT_EQ(refusal([&] { cast(runtime, stream, memory, memory + 256); }), "");
  std::string other;
  std::thread([&] { other = refusal([&] { cast(runtime, stream, memory, memory + 256); }); }).join();
  EXPECT_EQ(other, "cudaLaunchKernel of cast_array failed: cudaErrorInvalidResourceHandle");
  EXPECT_EQ(runtime.contexts(), (std::set<int>{0, 1})) << "it made one on GPU 0";
  runtime.synchronize(stream);
  runtime.close_stream(stream);
  runtime.release(Space::Device, memory);
}

// Streams that are made non-blocking do not wait for the zeros, however early they come; blocking ones do.
TEST(FakeRules, ZerosAreOrderedWithBlockingStreamsOnly) {
  for (const bool blocking : {false, true}) {
    FakeRuntime runtime({.blocking_streams = blocking, .late_zeroing = true});
    Stream* stream = runtime.open_stream(false);
    std::byte* memory = runtime.allocate(Space::Device, {64});
    std::byte ones[64];
    std::memset(ones, 1, sizeof ones);
    runtime.copy(memory, ones, {64}, stream);
    runtime.synchronize(stream);
    runtime.synchronize(runtime.legacy_stream());
    EXPECT_EQ(runtime.conflicts(), blocking ? std::vector<std::string>{}
                                            : std::vector<std::string>{"cudaMemset and cudaMemcpyAsync touch the same bytes "
                                                                       "without an order"});
    EXPECT_EQ(memory[63], std::byte{blocking ? std::uint8_t{1} : std::uint8_t{0}});
    runtime.close_stream(stream);
    runtime.release(Space::Device, memory);
  }
}

TEST(FakeRules, AKernelReachesAPeerOnceAccessIsEnabled) {
  for (const bool enabled : {false, true}) {
    FakeRuntime runtime({.devices = 4, .peers = 2});
    runtime.select(1);
    std::byte* there = runtime.allocate(Space::Device, {256});
    runtime.synchronize(runtime.legacy_stream());
    runtime.select(0);
    Stream* stream = runtime.open_stream(false);
    std::byte* here = runtime.allocate(Space::Device, {256});
    runtime.synchronize(runtime.legacy_stream());
    if (enabled) {
      EXPECT_TRUE(runtime.reach(0, 1));
    }
    EXPECT_FALSE(runtime.reach(0, 2)) << "this machine keeps them apart";
    runtime.copy(here, there, {256}, stream);  // through the host
    runtime.synchronize(stream);
    cast(runtime, stream, there, here);
    EXPECT_EQ(refusal([&] { runtime.synchronize(stream); }),
              enabled ? "" : "cudaStreamSynchronize failed: cudaErrorIllegalAddress, memory of GPU 1 out of reach of GPU 0");
  }
}

// Two streams of one connection: the wait at its head holds up work that nothing orders with it.
TEST(FakeRules, StreamsThatShareAConnectionHoldEachOtherUp) {
  for (const int connections : {1, 2}) {
    FakeRuntime runtime({.connections = connections});
    Stream *one = runtime.open_stream(false), *two = runtime.open_stream(false);
    Meeting state = Meeting::Held;
    runtime.put_meeting(one, "a meeting", {}, {}, [&] { return state; });
    Event* event = runtime.make_event(false);
    runtime.record(event, two);
    for (int i = 0; i < 20; ++i) static_cast<void>(runtime.done(event));
    EXPECT_EQ(runtime.done(event), connections == 2);
    state = Meeting::Runs;  // on the GPU, out of the connection
    for (int i = 0; i < 20; ++i) static_cast<void>(runtime.done(event));
    EXPECT_TRUE(runtime.done(event));
    state = Meeting::Over;
    for (Stream* stream : {one, two}) runtime.synchronize(stream), runtime.close_stream(stream);
    runtime.drop_event(event);
  }
}

// A graph's event: not recorded at first, and later as it was, until the GPU comes to it.
TEST(FakeRules, AnEventOfAGraphShowsItsFormerState) {
  FakeRuntime runtime;
  Stream* stream = runtime.open_stream(false);
  Event *inside = runtime.make_event(true), *after = runtime.make_event(true), *gate = runtime.make_event(true);
  runtime.begin_capture(stream);
  runtime.record(inside, stream);
  Graph* graph = runtime.end_capture(stream);
  bool open = false;
  runtime.put_meeting(stream, "a gate", {}, {}, [&] { return open ? Meeting::Over : Meeting::Runs; });
  runtime.launch(graph, stream);
  runtime.record(after, stream);
  EXPECT_TRUE(runtime.done(inside)) << "never recorded: CUDA says that it is done";
  EXPECT_FALSE(runtime.done(after));
  EXPECT_EQ(refusal([&] { static_cast<void>(runtime.nanoseconds(inside, inside)); }),
            "cudaEventElapsedTime failed: cudaErrorInvalidResourceHandle");
  open = true;
  runtime.synchronize(stream);
  EXPECT_EQ(runtime.nanoseconds(inside, after), 0);
  runtime.drop_graph(graph);
  runtime.close_stream(stream);
  for (Event* event : {inside, after, gate}) runtime.drop_event(event);
}

// The algorithm that was chosen with one bias would load another, which begins in the middle of 16 bytes, where it may not: plans pack parameters
// without padding, so the biases of a hidden size of 60 do.
TEST(FakeRules, ABiasThatIsLessAlignedIsAProductOfAnotherForm) {
  FakeRuntime runtime;
  Stream* stream = runtime.open_stream(false);
  std::byte* memory = runtime.allocate(Space::Device, {4096});
  runtime.synchronize(runtime.legacy_stream());
  const Matrix tile{.data = memory, .row = 8, .dtype = DType::F32},
      result{.data = memory + 1024, .row = 8, .dtype = DType::F32};
  for (const int bias : {2048, 2056}) {
    runtime.multiply({.m = 8, .n = 8, .k = 8, .a = tile, .b = tile, .c = result, .bias = memory + bias}, nullptr, {}, stream);
    EXPECT_EQ(refusal([&] { runtime.synchronize(stream); }), "") << bias;
  }
  runtime.close_stream(stream);
  runtime.release(Space::Device, memory);
}

// A thread that loads a kernel for the first time waits for it; the second time it does not.
TEST(FakeRules, TheFirstLaunchLoadsTheKernel) {
  FakeRuntime runtime({.first_use = std::chrono::milliseconds(30)});
  Stream* stream = runtime.open_stream(false);
  std::byte* memory = runtime.allocate(Space::Device, {512});
  runtime.synchronize(runtime.legacy_stream());
  const auto before = std::chrono::steady_clock::now();
  cast(runtime, stream, memory, memory + 256);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(30));
  runtime.synchronize(stream);
  runtime.close_stream(stream);
  runtime.release(Space::Device, memory);
}

}  // namespace
}  // namespace foreshard::gpu::fake_rules_test
