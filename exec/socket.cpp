#include "exec/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "core/error.h"

namespace foreshard {

namespace {

using std::chrono::milliseconds;

std::string why() { return std::strerror(errno); }

// Small messages leave at once.
void prepare(int descriptor) {
  const int on = 1;
  static_cast<void>(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

struct Free {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// -1: nobody there (yet). A host that does not answer at all is tried for two seconds.
int try_connect(const addrinfo* list) {
  constexpr timeval kTry{.tv_sec = 2, .tv_usec = 0}, kEver{.tv_sec = 0, .tv_usec = 0};
  for (const addrinfo* at = list; at; at = at->ai_next) {
    const int descriptor = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (descriptor < 0) continue;
    static_cast<void>(setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kTry, sizeof kTry));  // Linux: of connect too
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

void Socket::send(const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor_, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
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

ListeningSocket::ListeningSocket(int port) {
  const std::string where = "listening on port " + std::to_string(port);
  descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) throw DeviceError(where, why());
  const int on = 1;
  static_cast<void>(setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  sockaddr_in address = {};
  address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_ANY),
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t length = sizeof address;
  if (::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(descriptor_, 1024) != 0 ||
      ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    const std::string problem = why();
    ::close(descriptor_);
    throw DeviceError(where, problem);
  }
  port_ = ntohs(address.sin_port);
}

ListeningSocket::~ListeningSocket() { ::close(descriptor_); }

Socket ListeningSocket::accept(Deadline until) {
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd entry{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (ready == 0 && left <= 0) throw DeviceError("waiting on port " + std::to_string(port_), "nobody came in time");
    if (ready <= 0) continue;
    sockaddr_in address = {};
    socklen_t length = sizeof address;
    const int descriptor = ::accept4(descriptor_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC);
    if (descriptor < 0) continue;
    prepare(descriptor);
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    return Socket(descriptor, text);
  }
}

}  // namespace foreshard
