// A TCP connection that sends and receives whole stretches of bytes, and the door that others knock at.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace foreshard {

using Deadline = std::chrono::steady_clock::time_point;

// All calls throw DeviceError with the address; a deadline that passes is one.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor, std::string peer) : descriptor_(descriptor), peer_(std::move(peer)) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), peer_(std::move(other.peer_)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  // Tries again until the deadline while nobody listens there.
  static Socket connect(const std::string& address, int port, Deadline until);

  bool open() const { return descriptor_ >= 0; }
  const std::string& peer() const { return peer_; }  // "10.0.0.2"
  void close();
  void shut();  // wakes whoever reads from it

  void send(const void* data, std::size_t bytes);
  // False at a clean end of the connection before the first byte.
  bool receive(void* data, std::size_t bytes, Deadline until = Deadline::max());

 private:
  bool wait(short what, Deadline until) const;

  int descriptor_ = -1;
  std::string peer_ = {};
};

class ListeningSocket {
 public:
  explicit ListeningSocket(int port);  // 0: any free one
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  int port() const { return port_; }
  Socket accept(Deadline until);

 private:
  int descriptor_ = -1, port_ = 0;
};

}  // namespace foreshard
