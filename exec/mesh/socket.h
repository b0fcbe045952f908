// A TCP connection that sends and receives whole stretches of bytes, and the door that others knock at.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace foreshard {

using Deadline = std::chrono::steady_clock::time_point;

// All calls throw DeviceError with the address; a deadline that passes is one. No call blocks for longer than its deadline, or, after
// `shut` was called by another thread, at all.
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
  std::string own_address() const;                   // of this end
  void close();
  void shut();  // wakes whoever reads from it or sends

  void send(const void* data, std::size_t bytes, Deadline until = Deadline::max());
  // Whether a short message would leave at once.
  bool can_send() const;
  bool has_bytes() const;  // to receive, or has ended
  bool ended() const;      // by the other side; what it sent before may still lie here
  // False at a clean end of the connection before the first byte.
  bool receive(void* data, std::size_t bytes, Deadline until = Deadline::max());
  // What has come of at most `bytes`, without waiting; 0: nothing. The end of the connection is a DeviceError.
  std::size_t receive_some(void* data, std::size_t bytes);
  // The same, but it stays; an end is nothing.
  std::size_t look(void* data, std::size_t bytes) const;
  std::size_t waiting() const;  // bytes that have come
  // Until something has come, or the connection has ended. False when the deadline passed.
  bool wait_for_bytes(Deadline until) const;

 private:
  bool wait(short what, Deadline until) const;

  int descriptor_ = -1;
  std::string peer_ = {};
};

class ListeningSocket {
 public:
  // On this address of this machine only; "" or a name that the machine gives itself on its loopback (Debian writes its own name so into
  // /etc/hosts, and no other machine could come in): on all. Port 0: any free one.
  ListeningSocket(const std::string& address, int port);
  explicit ListeningSocket(int port) : ListeningSocket("", port) {}
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  int port() const { return port_; }
  int descriptor() const { return descriptor_; }
  std::string address() const;  // "0.0.0.0": all
  Socket accept_waiting();      // a caller that has connected; not open: none has

 private:
  int descriptor_ = -1, port_ = 0;
};

}  // namespace foreshard
