// A TCP connection that sends and receives arrays of bytes completely, and a listening socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace foreshard {

using Deadline = std::chrono::steady_clock::time_point;

// All functions throw DeviceError, with the address of the peer, when the connection fails or a deadline passes. None blocks beyond its
// deadline; after another thread has called `shut`, none blocks at all.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor, std::string peer) : descriptor_(descriptor), peer_(std::move(peer)) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), peer_(std::move(other.peer_)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  // Tries again until the deadline while no process listens there.
  static Socket connect(const std::string& address, int port, Deadline until);

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& peer() const { return peer_; }  // "10.0.0.2"
  std::string own_address() const;                   // the address of this end of the connection
  void close();
  void shut();  // shuts the connection down in both directions: threads that block in it return

  // Blocks until all bytes are handed to the system.
  void send(const void* data, std::size_t bytes, Deadline until = Deadline::max());
  bool can_send() const;   // whether there is room in the send buffer: a short message would not block
  bool has_bytes() const;  // whether there are bytes to receive, or the connection has ended
  bool ended() const;      // whether the peer has closed the connection; bytes it sent before may still be unread
  // Blocks until exactly `bytes` bytes have arrived. Returns false if the peer closed the connection before the first of them.
  bool receive(void* data, std::size_t bytes, Deadline until = Deadline::max());
  // Receives what has arrived, at most `bytes`, without blocking. Returns the number of bytes, 0 if none has arrived. Throws DeviceError if
  // the peer has closed the connection.
  std::size_t receive_some(void* data, std::size_t bytes);
  // As receive_some, but the bytes stay to be received again (MSG_PEEK), and it returns 0 if the peer has closed the connection.
  std::size_t look(void* data, std::size_t bytes) const;
  std::size_t waiting() const;  // number of bytes that have arrived and are unread
  // Blocks until there are bytes to receive or the connection has ended. False: the deadline passed.
  bool wait_for_bytes(Deadline until) const;

 private:
  bool wait(short what, Deadline until) const;

  int descriptor_ = -1;
  std::string peer_ = {};
};

class ListeningSocket {
 public:
  // Listens on this address of this machine and on no other one; if it is "", on all addresses. Port 0: any free port. Throws DeviceError.
  ListeningSocket(const std::string& address, int port);
  explicit ListeningSocket(int port) : ListeningSocket("", port) {}
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  int port() const { return port_; }
  int descriptor() const { return descriptor_; }
  std::string address() const;     // "0.0.0.0": all addresses
  bool only_this_machine() const;  // whether it listens on a loopback address
  Socket accept_waiting();         // accepts a connection without blocking; if there is none, the result is not open

 private:
  int descriptor_ = -1, port_ = 0;
};

}  // namespace foreshard
