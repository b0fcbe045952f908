// RankDevices: makes the device and the communicator of each rank of this process, for ranks that do not run on the CPU (for example on
// GPUs).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/base/stop.h"
#include "exec/communicator/communicator.h"
#include "exec/device/device.h"

namespace foreshard {

class RankDevices {
 public:
  virtual ~RankDevices() = default;
  // Each is called once per rank, in the order of the ranks, by one thread. `alone`: if not null, a mutex that each compute locks. All
  // devices that share it run one compute at a time, so that costs are measured without interference. The communicator is destroyed after
  // the device. Throw DeviceError if the device fails.
  virtual std::unique_ptr<DeviceBackend> device(RankId rank, std::mutex* alone) = 0;
  virtual std::unique_ptr<Communicator> communicator(RankId rank, DeviceBackend& device) = 0;
  // Called when the tasks of all ranks are made: connects the ranks, if that needs more than the memory of this process.
  virtual void connect() {}
  // Called after that: throws Error unless every collective has all members and every send has its receive.
  virtual void check() const = 0;
  // Messages for the user.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace foreshard
