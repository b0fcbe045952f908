// What the ranks of a process run on, when it is not the host: makes the device and the communicator of each.
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
  // One call each per rank, in the order of the ranks, on one thread. `alone`: when set, computes of all devices that share it run
  // one at a time, so that what they cost by themselves can be told. The communicator is destroyed after the device. Throw
  // DeviceError when the device fails.
  virtual std::unique_ptr<DeviceBackend> device(RankId rank, std::mutex* alone) = 0;
  virtual std::unique_ptr<Communicator> communicator(RankId rank, DeviceBackend& device) = 0;
  // After all ranks are ready: they find each other, where that takes more than memory of this process.
  virtual void connect() {}
  // Then: throws Error unless every collective has all members and every send its receive.
  virtual void check() const = 0;
  // What whoever runs it may want to know, in words.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace foreshard
