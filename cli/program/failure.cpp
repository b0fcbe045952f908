#include "cli/program/failure.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <ostream>
#include <system_error>

#include "cli/program/interrupt.h"
#include "cli/program/shell_words.h"
#include "core/base/error.h"
#include "core/base/printable.h"

namespace foreshard {

namespace {

using Line = std::array<char, 600>;

// Bytes of address space that this process has; 0: unknown. Allocates nothing.
double address_space() {
  std::array<char, 64> text = {};
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  double pages = 0;
  for (ssize_t i = 0; i < length && text.at(static_cast<std::size_t>(i)) >= '0'; ++i)
    pages = 10 * pages + (text.at(static_cast<std::size_t>(i)) - '0');
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

Line out_of_memory() {
  constexpr double kMiB = 1024 * 1024;
  Line line = {};
  rlimit limit = {};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const double taken = address_space() / kMiB;
  if (limited)
    std::snprintf(
        line.data(), line.size(),
        "foreshard: out of memory: an allocation was refused when the process had %.0f of the %.0f MiB of address space that "
        "ulimit -v allows; raise that limit, or ask for a smaller job\n",
        taken, static_cast<double>(limit.rlim_cur) / kMiB);
  else
    std::snprintf(line.data(), line.size(),
                  "foreshard: out of memory: an allocation was refused when the process had %.0f MiB of address space; free "
                  "memory on this "
                  "machine, or ask for a smaller job\n",
                  taken);
  return line;
}

ExitCode tell(const std::vector<std::string>& words, std::ostream& err) {
  const auto complain = [&](const std::string& what, ExitCode code) {
    err << "foreshard: " + printable_lines(what) + "\n";
    return code;
  };
  const auto complain_of_bug = [&](const std::string& what) {
    return complain(bug_report(what, "foreshard " + shell_line(words)), ExitCode::Bug);
  };
  try {
    throw;
  } catch (const Error& error) {
    if (interrupted()) return complain("interrupted", ExitCode::Interrupted);
    return complain(error.what(), ExitCode::WrongInput);
  } catch (const DeviceError& error) {
    return complain(error.what(), ExitCode::DeviceFailure);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error& error) {
    return complain(std::string("a call to the system failed: ") + error.what(), ExitCode::DeviceFailure);
  } catch (const std::exception& error) {
    return complain_of_bug(error.what());
  } catch (...) {
    return complain_of_bug("an exception of an unknown kind");
  }
}

[[noreturn]] void end_in_a_sentence() {
  Line line = {};
  int code = static_cast<int>(ExitCode::Bug);
  try {
    if (std::current_exception()) throw;
    std::snprintf(line.data(), line.size(), "foreshard: internal error: terminated; please report it with the command\n");
  } catch (const std::bad_alloc&) {
    line = out_of_memory(), code = static_cast<int>(ExitCode::DeviceFailure);
  } catch (const DeviceError& error) {
    std::snprintf(line.data(), line.size() - 1, "foreshard: %s\n", error.what());
    code = static_cast<int>(ExitCode::DeviceFailure);
  } catch (const std::system_error& error) {
    std::snprintf(line.data(), line.size(), "foreshard: a call to the system failed: %s\n", error.what());
    code = static_cast<int>(ExitCode::DeviceFailure);
  } catch (const std::exception& error) {
    std::snprintf(line.data(), line.size(), "foreshard: internal error: %s; please report it with the command\n", error.what());
  } catch (...) {
    std::snprintf(line.data(), line.size(),
                  "foreshard: internal error: an exception of an unknown kind; please report it with the command\n");
  }
  static_cast<void>(!::write(STDERR_FILENO, line.data(), std::strlen(line.data())));
  _exit(code);
}

}  // namespace

std::string bug_report(const std::string& what, const std::string& command) {
  return "internal error: " + what + "; please report it with this command: " + command;
}

ExitCode tell_failure(const std::vector<std::string>& words, std::ostream& err) {
  try {
    return tell(words, err);
  } catch (const std::bad_alloc&) {  // the reason itself, or no memory to say it
    err << out_of_memory().data() << std::flush;
    return ExitCode::DeviceFailure;
  }
}

void end_uncaught_with_a_sentence() { std::set_terminate(end_in_a_sentence); }

}  // namespace foreshard
