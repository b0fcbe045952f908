// LossLog: a CSV file that gets one line per training step: step,loss,time_s,loss_scale,skipped. Steps are numbered from 1, on through
// resumed runs.
#pragma once

#include <string>

#include "core/base/file_lock.h"
#include "exec/interpreter/execute.h"

namespace foreshard {

class LossLog {
 public:
  // `done`: steps of the training before this run. 0 makes a new file. Otherwise the lines of the first `done` steps are kept; later
  // lines, whose steps run again, and an incomplete last line are removed. Throws Error, also for a file that is no loss log, which
  // is left unchanged, and while another run writes to the file.
  LossLog(std::string path, int done);
  ~LossLog();
  LossLog(const LossLog&) = delete;
  LossLog& operator=(const LossLog&) = delete;

  // Written at once, so that no line is lost when the process is killed; throws DeviceError.
  void add(int step, const StepReport& report);

 private:
  std::string path_;
  FileLock lock_;
  int file_ = -1;
};

}  // namespace foreshard
