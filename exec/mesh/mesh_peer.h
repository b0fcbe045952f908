// Another process of the run: the connection to it, and the last state that it reported. One thread at a time writes a frame with its
// message to the connection, and one thread at a time reads one from it.
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

struct MeshReceive;
struct MeshFrame;

// What a process runs: an instruction of one of its ranks.
struct MeshRunning {
  std::string name = {};      // names the rank and the instruction; empty: it runs none
  bool communicates = false;  // the instruction communicates, so it may be waiting for another rank
};

struct MeshPeer {
  static constexpr std::size_t kMostAtOnce = std::size_t{16} << 20U;  // bytes of memory allocated before they arrive

  Socket socket = {};
  std::mutex sending = {};  // held by the thread that writes to the socket
  std::thread reader = {};  // the thread that reads the socket by default
  std::mutex reading = {};  // held by the thread that reads a frame
  // heard: when bytes last arrived from it, on this process's steady clock, nanoseconds; ended: steps that it has reported as ended.
  std::atomic<std::int64_t> heard = 0, ended = 0;
  std::atomic<bool> works = false, over = false;  // works: it reported that it computes; over: it has sent Bye
  int borrows_from = 0;                           // its process id (pid) if this process can read its memory, else 0
  bool lends_to = false;                          // whether it can read this process's memory
  // Guarded by the mutex of the mesh:
  bool read = false;               // its reader thread has ended: no more messages will arrive
  MeshRunning running = {};        // what it last reported
  MeshReceive* filling = nullptr;  // the receive whose message is arriving now; null: none, or it was cancelled
  bool touches = false;            // a thread is writing to the place of `filling` at this moment

  // All throw DeviceError. `write` sets frame.bytes to the size of `bytes`.
  void write(const MeshFrame& frame, std::span<const std::byte> bytes);
  // For messages that must not block their sender. Returns false if another thread has been sending for longer than `within`, or if the
  // peer does not accept the bytes within that time. In the latter case part of the message may be sent, and the connection is shut down.
  bool write_soon(const MeshFrame& frame, std::span<const std::byte> bytes, std::chrono::milliseconds within);
  void write_words(std::span<const std::byte> words);     // bytes that contain their own frame
  std::vector<std::byte> read_bytes(std::int64_t count);  // blocks until `count` bytes have arrived

  // Looks at the next frame that has arrived and has not been read, without blocking. Nothing: no frame has arrived, or its message is
  // short and incomplete. Short: its message has arrived completely, so that reading it does not block. Long: its message is larger than
  // 64 KiB, or the frame is a Bye or invalid; the reader thread should read it.
  enum class Waiting : std::uint8_t { Nothing, Short, Long };
  Waiting waiting_frame() const;
};

}  // namespace foreshard
