// Another process of the run: the connection to it, on which frames are written whole by one thread at a time and read by one at a time, and what it
// has said of itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "exec/mesh/socket.h"

namespace foreshard {

struct MeshArrival;
struct MeshFrame;

// What one of the ranks of a process runs.
struct MeshRunning {
  std::string name = {};      // of rank and instruction; empty: nothing
  bool communicates = false;  // it may be waiting for a partner
};

struct MeshPeer {
  static constexpr std::size_t kMostAtOnce = std::size_t{16} << 20U;  // bytes of a message

  Socket socket = {};
  std::mutex sending = {};
  std::thread reader = {};
  std::mutex reading = {};  // of whoever reads a frame
  std::atomic<std::int64_t> heard = 0, ended = 0;
  std::atomic<bool> works = false, over = false;  // over: it said that it goes
  int borrows_from = 0;                           // its process number on this machine, if its memory can be read; else 0
  bool lends_to = false;                          // it can read the memory of this one
  // Under the lock of the mesh:
  bool read = false;  // nothing more comes
  MeshRunning running = {};
  MeshArrival* filling = nullptr;  // where the message goes that comes just now
  bool touches = false;            // at this moment

  // All throw DeviceError.
  void write(const MeshFrame& frame, std::span<const std::byte> bytes);
  // For words that must not hold their sender up. False: somebody sends for longer than that, or the other does not take it; then the
  // connection is of no use any more.
  bool write_soon(const MeshFrame& frame, std::span<const std::byte> bytes, std::chrono::milliseconds within);
  void write_words(std::span<const std::byte> words);
  std::vector<std::byte> read_bytes(std::int64_t count);

  // What has come and is not yet read. Short: here to the last byte, so that who reads it does not wait.
  enum class Waiting : std::uint8_t { Nothing, Short, Long };
  Waiting waiting_frame() const;
};

}  // namespace foreshard
