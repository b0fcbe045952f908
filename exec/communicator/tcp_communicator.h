// Communicator between ranks of several processes. It sends messages through a ProcessMesh, also between ranks of one process. The same
// members sum the same slices in the same order as in a ThreadCommunicator, so the results have the same bits.
#pragma once

#include "exec/base/stop.h"
#include "exec/communicator/communicator.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

class TcpCommunicator : public Communicator {
 public:
  TcpCommunicator(ProcessMesh& mesh, const Stop& stop, RankId rank) : mesh_(mesh), stop_(stop), rank_(rank) {}
  std::unique_ptr<StreamTask> collective(const CollectiveCall& call) override;
  std::unique_ptr<StreamTask> exchange(const ExchangeCall& call) override;

 private:
  ProcessMesh& mesh_;
  const Stop& stop_;
  RankId rank_;
};

}  // namespace foreshard
