// Where those wait who knocked at a door and have not yet said who they are. All are listened to at once, each for a short time and for a
// few bytes: a stranger (a scanner of ports, a browser, a client that sends nothing) delays no other and is disconnected.
#pragma once

#include <deque>
#include <vector>

#include "exec/mesh/mesh_frame.h"
#include "exec/mesh/mesh_words.h"
#include "exec/mesh/socket.h"

namespace foreshard {

class WaitingRoom {
 public:
  explicit WaitingRoom(ListeningSocket& door) : door_(door) {}

  struct Visitor {
    Socket socket = {};
    MeshHello hello = {};
  };
  // The next who has greeted. Throws DeviceError at the deadline, or when one of those who wait here too ends its connection.
  Visitor next(Deadline until, const std::vector<const Socket*>& companions = {});

 private:
  struct Guest {
    Socket socket = {};
    Deadline until = {};
    std::string heard = {};
    std::string text = {};  // once whole
  };
  void listen(Deadline until, const std::vector<const Socket*>& companions);
  static bool stays(Guest& guest);  // false: it is a stranger

  ListeningSocket& door_;
  std::deque<Guest> guests_;
};

}  // namespace foreshard
