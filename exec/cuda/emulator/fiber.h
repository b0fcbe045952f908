// Fiber: a function with its own stack that can be suspended and resumed. The emulator uses one per thread of a block.
#pragma once

#include <memory>

namespace foreshard::emulator {

class Fiber {
 public:
  using Body = void (*)(void*);
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  void begin(Body body, void* argument);  // prepares a call of body(argument); an earlier call is discarded
  // Runs the body until it yields or ends; after the end, `begin` has to be called again
  void resume();
  void yield();  // called by the body: returns from `resume`

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard::emulator
