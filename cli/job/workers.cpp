#include "cli/job/workers.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "core/base/error.h"

namespace foreshard {

namespace {

struct Worker {
  std::size_t index = 0;
  pid_t process = -1;
  int answer = -1;        // reading end of its pipe
  std::string text = {};  // what it has written: 'd' and a double, or the letter of a kind of error and a message
};

void write_all(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t more = write(to, text.data() + done, text.size() - done);
    if (more <= 0) return;
    done += static_cast<std::size_t>(more);
  }
}

[[noreturn]] void be_worker(int answer, std::size_t index, const std::function<double(std::size_t)>& work) {
  std::signal(SIGINT, SIG_IGN);  // the parent decides
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  std::string text;
  try {
    const double value = work(index);
    text = "d" + std::string(sizeof value, '\0');
    std::memcpy(text.data() + 1, &value, sizeof value);
  } catch (const Error& problem) {
    text = std::string("e") + problem.what();
  } catch (const DeviceError& problem) {
    text = std::string("f") + problem.what();
  } catch (const std::bad_alloc&) {
    text = "m";
  } catch (const std::exception& problem) {
    text = std::string("b") + problem.what();
  }
  write_all(answer, text);
  _exit(0);  // no destructors and no flushing of the parent's buffers
}

// Rethrows what a worker has thrown; returns if its text is a result.
void rethrow(const std::string& text) {
  const std::string what = text.empty() ? "" : text.substr(1);
  if (text.starts_with("e")) throw Error(what);
  if (text.starts_with("f")) throw DeviceError("a worker process", what);
  if (text.starts_with("m")) throw std::bad_alloc();
  if (text.starts_with("b")) throw Bug(what);
}

// The running workers. The destructor kills those that have not ended.
class Workers {
 public:
  Workers(std::size_t count, const std::function<double(std::size_t)>& work, const WorkerOptions& options)
      : work_(work), options_(options), results_(count) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    for (const Worker& worker : running_) {
      kill(worker.process, SIGKILL);
      waitpid(worker.process, nullptr, 0);
      close(worker.answer);
    }
  }

  std::size_t running() const { return running_.size(); }
  std::vector<std::optional<double>>& results() { return results_; }

  void start(std::size_t index) {
    int ends[2];
    if (pipe(ends) != 0) throw DeviceError("pipe", std::strerror(errno));
    std::fflush(nullptr);  // else a worker that flushes would write this process's buffered output a second time
    const pid_t process = fork();
    if (process < 0) {
      close(ends[0]), close(ends[1]);
      throw DeviceError("fork", std::strerror(errno));
    }
    if (process == 0) {
      close(ends[0]);
      be_worker(ends[1], index, work_);
    }
    close(ends[1]);
    running_.push_back({index, process, ends[0]});
  }

  // Waits a short time for answers; returns the indices of the finished calls.
  std::vector<std::size_t> collect() {
    std::vector<pollfd> waits;
    for (const Worker& worker : running_) waits.push_back({worker.answer, POLLIN, 0});
    std::vector<std::size_t> done;
    if (poll(waits.data(), static_cast<nfds_t>(waits.size()), 50) <= 0) return done;
    for (std::size_t i = waits.size(); i-- > 0;)
      if (waits[i].revents != 0 && ended(running_[i])) {
        const Worker worker = running_[i];
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
        try {
          take(worker);
        } catch (const Bug& bug) {
          if (!options_.failed) throw;
          options_.failed(worker.index, bug);
        }
        done.push_back(worker.index);
      }
    return done;
  }

 private:
  static bool ended(Worker& worker) {
    char bytes[4096];
    const ssize_t more = read(worker.answer, bytes, sizeof bytes);
    if (more > 0) worker.text.append(bytes, static_cast<std::size_t>(more));
    return more == 0 || (more < 0 && errno != EINTR);
  }

  void take(const Worker& worker) {
    close(worker.answer);
    int status = 0;
    waitpid(worker.process, &status, 0);
    double value = 0;
    rethrow(worker.text);
    if (worker.text.size() != 1 + sizeof value)
      throw DeviceError(
          "worker process " + std::to_string(worker.index),
          WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "status " + std::to_string(WEXITSTATUS(status)));
    std::memcpy(&value, worker.text.data() + 1, sizeof value);
    results_[worker.index] = value;
  }

  const std::function<double(std::size_t)>& work_;
  const WorkerOptions& options_;
  std::vector<std::optional<double>> results_;
  std::vector<Worker> running_ = {};
};

}  // namespace

int one_per_core() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

std::vector<std::optional<double>> in_workers(std::size_t count, const std::function<double(std::size_t)>& work,
                                              const WorkerOptions& options) {
  const auto most = static_cast<std::size_t>(options.processes > 0 ? options.processes : one_per_core());
  Workers workers(count, work, options);
  std::size_t next = 0;
  while (next < count || workers.running() > 0) {
    if (options.stop && options.stop()) break;
    while (next < count && workers.running() < most) workers.start(next++);
    for (const std::size_t index : workers.collect())
      if (options.finished) options.finished(index);
  }
  return std::move(workers.results());
}

}  // namespace foreshard
