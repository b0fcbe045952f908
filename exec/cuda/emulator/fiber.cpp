#include "exec/cuda/emulator/fiber.h"

#include <cstddef>
#include <cstdint>
#include <utility>

// makecontext and swapcontext save the signal mask by a system call, which takes 50 times as long as the switch itself. So on x86-64 the
// code below switches the callee-saved registers itself. Sanitizers support only swapcontext.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FORESHARD_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace foreshard::emulator {

static constexpr std::size_t kStack = std::size_t{64} << 10U;

#ifdef FORESHARD_OWN_SWITCH

extern "C" void foreshard_switch_stack(void** from, void* to);
__asm__(
    ".text\n.type foreshard_switch_stack,@function\nforeshard_switch_stack:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size foreshard_switch_stack,.-foreshard_switch_stack\n");

struct Fiber::State {
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStack);
  Body body = nullptr;
  void* argument = nullptr;
  void *inside = nullptr, *outside = nullptr;
  bool starts = false;

  static thread_local State* starting;
  [[noreturn]] static void enter() {
    State* state = starting;
    state->body(state->argument);
    while (true) foreshard_switch_stack(&state->inside, state->outside);
  }
};
thread_local Fiber::State* Fiber::State::starting = nullptr;

void Fiber::begin(Body body, void* argument) {
  state_->body = body;
  state_->argument = argument;
  auto top = reinterpret_cast<std::uintptr_t>(state_->stack.get() + kStack) & ~std::uintptr_t{15};
  auto* words = reinterpret_cast<void**>(top) - 8;  // six registers, the return address, and padding for alignment
  for (int i = 0; i < 8; ++i) words[i] = nullptr;
  words[6] = reinterpret_cast<void*>(&State::enter);
  state_->inside = words;
  state_->starts = true;
}
void Fiber::resume() {
  if (std::exchange(state_->starts, false)) State::starting = state_.get();
  foreshard_switch_stack(&state_->outside, state_->inside);
}
void Fiber::yield() { foreshard_switch_stack(&state_->inside, state_->outside); }

#else

struct Fiber::State {
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(4 * kStack);
  Body body = nullptr;
  void* argument = nullptr;
  ucontext_t inside = {}, outside = {};

  static void enter(unsigned high, unsigned low) {
    auto* state = reinterpret_cast<State*>(std::uintptr_t{high} << 32U | low);
    state->body(state->argument);
    while (true) swapcontext(&state->inside, &state->outside);
  }
};

void Fiber::begin(Body body, void* argument) {
  state_->body = body;
  state_->argument = argument;
  getcontext(&state_->inside);
  state_->inside.uc_stack = {.ss_sp = state_->stack.get(), .ss_flags = 0, .ss_size = 4 * kStack};
  state_->inside.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(state_.get());
  makecontext(&state_->inside, reinterpret_cast<void (*)()>(&State::enter), 2, static_cast<unsigned>(address >> 32U),
              static_cast<unsigned>(address));
}
void Fiber::resume() { swapcontext(&state_->outside, &state_->inside); }
void Fiber::yield() { swapcontext(&state_->inside, &state_->outside); }

#endif

Fiber::Fiber() : state_(std::make_unique<State>()) {}
Fiber::~Fiber() = default;

}  // namespace foreshard::emulator
