// The losses of a training as a table that grows by a line a step: step,loss,time_s,loss_scale,skipped. Steps count from 1 over the whole training.
#pragma once

#include <string>

#include "exec/interpreter/execute.h"

namespace foreshard {

class LossLog {
 public:
  // A training that begins (`done` is 0) makes a new file. One that goes on after `done` steps keeps their lines and leaves out those behind, which
  // it will write again, and a last one that was not ended. Throws Error, also for a file that is no such table: it stays as it is.
  LossLog(std::string path, int done);
  ~LossLog();
  LossLog(const LossLog&) = delete;
  LossLog& operator=(const LossLog&) = delete;

  void add(int step, const StepReport& report);  // at once, so that a kill loses no line; throws DeviceError

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace foreshard
