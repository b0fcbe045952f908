// A library to be loaded before a program (LD_PRELOAD): it refuses memory or threads, as a system does that has no more of them. Settings in the
// environment:
//   FORESHARD_REFUSE     memory: malloc and its kin, and operator new; maps: mmap of memory; threads: pthread_create
//   FORESHARD_REFUSE_AT  the number of the first call that is refused, from 1; 0: none
//   FORESHARD_REFUSE_FOR how many calls are refused from there on; 0: all
//   FORESHARD_REFUSE_COUNT  a file to which the process writes, when main returns, how many calls of each kind it has made: "memory 5", ...
// Calls are counted from the begin of main: what the C library does before that cannot be mended by the program.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace {

enum Kind : int { kNone, kMemory, kMaps, kThreads };

std::atomic<bool> in_main{false};
std::atomic<std::int64_t> calls[kThreads + 1];
Kind kind = kNone;
std::int64_t first = 0, count = 0;

bool refuses(Kind asked) {
  if (!in_main.load(std::memory_order_relaxed)) return false;
  const std::int64_t call = calls[asked].fetch_add(1, std::memory_order_relaxed) + 1;
  return asked == kind && first > 0 && call >= first && (count == 0 || call < first + count);
}

// The next definition behind this library's. While the dynamic linker looks for it, nothing else may be needed.
template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// What an allocator itself maps is not refused: jemalloc 5.3 does not survive it where it sets up a thread.
bool of_allocator(void* caller) {
  Dl_info place = {};
  return dladdr(caller, &place) != 0 && place.dli_fname && strstr(place.dli_fname, "malloc");
}

std::int64_t number(const char* name) {
  const char* text = getenv(name);
  return text ? strtoll(text, nullptr, 10) : 0;
}

void write_count() {
  const char* file = getenv("FORESHARD_REFUSE_COUNT");
  if (!file || !*file) return;
  in_main = false;
  const int to = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (to >= 0)
    dprintf(to, "memory %lld maps %lld threads %lld\n", static_cast<long long>(calls[kMemory]),
            static_cast<long long>(calls[kMaps]), static_cast<long long>(calls[kThreads]));
  if (to >= 0) close(to);
}

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

int counting_main(int argc, char** argv, char** environment) {
  const char* what = getenv("FORESHARD_REFUSE");
  if (what)
    kind = strcmp(what, "memory") == 0    ? kMemory
           : strcmp(what, "maps") == 0    ? kMaps
           : strcmp(what, "threads") == 0 ? kThreads
                                          : kNone;
  first = number("FORESHARD_REFUSE_AT"), count = number("FORESHARD_REFUSE_FOR");
  in_main = true;
  const int code = real_main(argc, argv, environment);
  write_count();
  return code;
}

}  // namespace

extern "C" {

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  real_main = main;
  return next<Start>("__libc_start_main")(counting_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(size_t size) {
  static const auto real = next<void* (*)(size_t)>("malloc");
  if (refuses(kMemory)) return errno = ENOMEM, nullptr;
  return real(size);
}

void* calloc(size_t items, size_t size) {
  static const auto real = next<void* (*)(size_t, size_t)>("calloc");
  if (refuses(kMemory)) return errno = ENOMEM, nullptr;
  return real(items, size);
}

void* realloc(void* old, size_t size) {
  static const auto real = next<void* (*)(void*, size_t)>("realloc");
  if (refuses(kMemory)) return errno = ENOMEM, nullptr;
  return real(old, size);
}

int posix_memalign(void** to, size_t alignment, size_t size) {
  static const auto real = next<int (*)(void**, size_t, size_t)>("posix_memalign");
  if (refuses(kMemory)) return ENOMEM;
  return real(to, alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  static const auto real = next<void* (*)(size_t, size_t)>("aligned_alloc");
  if (refuses(kMemory)) return errno = ENOMEM, nullptr;
  return real(alignment, size);
}

__attribute__((noinline)) void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
  static const auto real = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  if (!of_allocator(__builtin_return_address(0)) && refuses(kMaps)) return errno = ENOMEM, MAP_FAILED;
  return real(address, length, protection, flags, file, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static const auto real = next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  if (refuses(kThreads)) return EAGAIN;
  return real(thread, attributes, body, argument);
}

}  // extern "C"

// An allocator may have these without going through malloc.
void* operator new(size_t size) {
  static const auto real = next<void* (*)(size_t)>("_Znwm");
  if (refuses(kMemory)) throw std::bad_alloc();
  return real(size);
}
void* operator new[](size_t size) {
  static const auto real = next<void* (*)(size_t)>("_Znam");
  if (refuses(kMemory)) throw std::bad_alloc();
  return real(size);
}
void* operator new(size_t size, const std::nothrow_t& none) noexcept {
  static const auto real = next<void* (*)(size_t, const std::nothrow_t&)>("_ZnwmRKSt9nothrow_t");
  return refuses(kMemory) ? nullptr : real(size, none);
}
void* operator new(size_t size, std::align_val_t alignment) {
  static const auto real = next<void* (*)(size_t, std::align_val_t)>("_ZnwmSt11align_val_t");
  if (refuses(kMemory)) throw std::bad_alloc();
  return real(size, alignment);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t& none) noexcept {
  static const auto real =
      next<void* (*)(size_t, std::align_val_t, const std::nothrow_t&)>("_ZnwmSt11align_val_tRKSt9nothrow_t");
  return refuses(kMemory) ? nullptr : real(size, alignment, none);
}
