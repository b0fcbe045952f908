// Accepts connections at a listening socket and reads their greeting (MeshHello). It serves all connections at once, and each has 10
// seconds to send a complete greeting of limited size. Other programs that connect (a port scanner, a browser, a client that sends nothing)
// are disconnected and do not delay the others.
#pragma once

#include <deque>
#include <vector>

#include "exec/mesh/mesh_frame.h"
#include "exec/mesh/mesh_words.h"
#include "exec/mesh/socket.h"

namespace foreshard {

class GreetingReader {
 public:
  explicit GreetingReader(ListeningSocket& door) : door_(door) {}

  struct Visitor {
    Socket socket = {};
    MeshHello hello = {};
  };
  // Blocks until a connection has sent its greeting, and returns both. Throws DeviceError at the deadline, or when the peer closes one of
  // the connections `companions`, which have been accepted before and wait for the others.
  Visitor next(Deadline until, const std::vector<const Socket*>& companions = {});

 private:
  struct PendingConnection {
    Socket socket = {};
    Deadline until = {};
    std::string heard = {};  // bytes received so far
    std::string text = {};   // the greeting, when it is complete
  };
  void listen(Deadline until, const std::vector<const Socket*>& companions);
  static bool stays(
      PendingConnection& guest);  // reads what has arrived; false: it is not a process of a run and is to be disconnected

  ListeningSocket& door_;
  std::deque<PendingConnection> guests_;
};

}  // namespace foreshard
