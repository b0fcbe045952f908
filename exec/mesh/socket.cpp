#include "exec/mesh/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "core/base/error.h"

namespace foreshard {

namespace {

using std::chrono::milliseconds;

std::string why() { return std::strerror(errno); }

// Small messages are sent at once (no Nagle algorithm).
void prepare(int descriptor) {
  const int on = 1;
  static_cast<void>(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

struct Free {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// Returns the descriptor, or -1 if no process listens there (yet). A host that does not answer at all is tried for two seconds.
int try_connect(const addrinfo* list) {
  constexpr timeval kTry{.tv_sec = 2, .tv_usec = 0}, kEver{.tv_sec = 0, .tv_usec = 0};
  for (const addrinfo* at = list; at; at = at->ai_next) {
    const int descriptor = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (descriptor < 0) continue;
    static_cast<void>(setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kTry, sizeof kTry));  // on Linux, it also limits connect
    if (::connect(descriptor, at->ai_addr, at->ai_addrlen) == 0) {
      static_cast<void>(setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kEver, sizeof kEver));
      return descriptor;
    }
    const int problem = errno;
    ::close(descriptor);
    errno = problem;
  }
  return -1;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
    peer_ = std::move(other.peer_);
  }
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void Socket::shut() {
  if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RDWR);
}

Socket Socket::connect(const std::string& address, int port, Deadline until) {
  const std::string where = "connection to " + address + ":" + std::to_string(port);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC, hints.ai_socktype = SOCK_STREAM;
  while (true) {
    addrinfo* found = nullptr;
    const int problem = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (problem != 0 && problem != EAI_AGAIN) throw DeviceError(where, gai_strerror(problem));
    const std::unique_ptr<addrinfo, Free> list(found);
    const int descriptor = problem == 0 ? try_connect(list.get()) : -1;
    if (descriptor >= 0) {
      prepare(descriptor);
      return Socket(descriptor, address);
    }
    if (std::chrono::steady_clock::now() > until) throw DeviceError(where, problem == 0 ? why() : gai_strerror(problem));
    std::this_thread::sleep_for(milliseconds(20));
  }
}

// False when the deadline passed.
bool Socket::wait(short what, Deadline until) const {
  while (true) {
    int timeout = -1;
    if (until != Deadline::max()) {
      const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now()).count();
      timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
    }
    pollfd entry{.fd = descriptor_, .events = what, .revents = 0};
    const int ready = ::poll(&entry, 1, timeout);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw DeviceError("poll of the connection to " + peer_, why());
    if (ready == 0 && std::chrono::steady_clock::now() >= until) return false;
  }
}

bool Socket::can_send() const {
  pollfd entry{.fd = descriptor_, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

bool Socket::has_bytes() const {
  pollfd entry{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

bool Socket::ended() const {
  pollfd entry{.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

bool Socket::wait_for_bytes(Deadline until) const { return wait(POLLIN, until); }

void Socket::send(const void* data, std::size_t bytes, Deadline until) {
  const char* at = static_cast<const char*>(data);
  const int flags = MSG_NOSIGNAL | (until == Deadline::max() ? 0 : MSG_DONTWAIT);
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor_, at, bytes, flags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait(POLLOUT, until)) throw DeviceError("sending to " + peer_, "it does not take it");
      continue;
    }
    if (sent < 0) throw DeviceError("sending to " + peer_, why());
    at += sent, bytes -= static_cast<std::size_t>(sent);
  }
}

bool Socket::receive(void* data, std::size_t bytes, Deadline until) {
  char* at = static_cast<char*>(data);
  bool first = true;
  while (bytes > 0) {
    if (until != Deadline::max() && !wait(POLLIN, until)) throw DeviceError("receiving from " + peer_, "nothing came in time");
    const ssize_t got = ::recv(descriptor_, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 && first) return false;
    if (got <= 0) throw DeviceError("receiving from " + peer_, got == 0 ? "the connection ended" : why());
    at += got, bytes -= static_cast<std::size_t>(got), first = false;
  }
  return true;
}

std::size_t Socket::receive_some(void* data, std::size_t bytes) {
  while (true) {
    const ssize_t got = ::recv(descriptor_, data, bytes, MSG_DONTWAIT);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) throw DeviceError("receiving from " + peer_, "the connection ended");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) throw DeviceError("receiving from " + peer_, why());
  }
}

std::size_t Socket::look(void* data, std::size_t bytes) const {
  const ssize_t got = ::recv(descriptor_, data, bytes, MSG_DONTWAIT | MSG_PEEK);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::size_t Socket::waiting() const {
  int bytes = 0;
  return ::ioctl(descriptor_, FIONREAD, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

namespace {

std::string host_of(const sockaddr_storage& address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  const int problem =
      getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return problem == 0 ? text : "?";
}

std::unique_ptr<addrinfo, Free> look_up(const std::string& address, int port, int flags, const std::string& where) {
  addrinfo hints = {};
  hints.ai_family = address.empty() ? AF_INET : AF_UNSPEC, hints.ai_socktype = SOCK_STREAM, hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(address.empty() ? nullptr : address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (problem != 0) throw DeviceError(where, gai_strerror(problem));
  return std::unique_ptr<addrinfo, Free>(found);
}

}  // namespace

std::string Socket::own_address() const {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw DeviceError("getsockname of the connection to " + peer_, why());
  return host_of(address, length);
}

ListeningSocket::ListeningSocket(const std::string& address, int port) {
  const std::string where = "listening on " + (address.empty() ? "" : address + " ") + "port " + std::to_string(port);
  const auto list = look_up(address, port, AI_PASSIVE, where);
  std::string problem = "no address";
  for (const addrinfo* at = list.get(); at && descriptor_ < 0; at = at->ai_next) {
    const int descriptor = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    const int on = 1;
    if (descriptor >= 0) static_cast<void>(setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    if (descriptor >= 0 && ::bind(descriptor, at->ai_addr, at->ai_addrlen) == 0 && ::listen(descriptor, 1024) == 0) {
      descriptor_ = descriptor;
      break;
    }
    problem = why();
    if (descriptor >= 0) ::close(descriptor);
  }
  if (descriptor_ < 0) throw DeviceError(where, problem);
  sockaddr_storage own = {};
  socklen_t length = sizeof own;
  static_cast<void>(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &length));
  port_ = ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

ListeningSocket::~ListeningSocket() { ::close(descriptor_); }

bool ListeningSocket::only_this_machine() const {
  const std::string own = address();
  return own.starts_with("127.") || own == "::1";
}

std::string ListeningSocket::address() const {
  sockaddr_storage own = {};
  socklen_t length = sizeof own;
  static_cast<void>(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &length));
  return host_of(own, length);
}

Socket ListeningSocket::accept_waiting() {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  const int descriptor = ::accept4(descriptor_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC);
  if (descriptor < 0) return {};
  prepare(descriptor);
  return Socket(descriptor, host_of(address, length));
}

}  // namespace foreshard
