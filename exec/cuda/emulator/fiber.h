// A function with a stack of its own that can pause: one thread of an emulated block.
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
  void begin(Body body, void* argument);  // what an earlier run left on the stack is forgotten
  void resume();                          // until it pauses or ends; an ended one must begin again
  void yield();                           // from inside

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard::emulator
