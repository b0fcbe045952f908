// Reads and writes files in the safetensors format (huggingface/safetensors, README, "Format"):
//
//   8 bytes    length of the header, little-endian
//   header     JSON: {"name": {"dtype", "shape", "data_offsets"}, ..., "__metadata__": {text: text, ...}}
//   data       of the tensors, little-endian and row-major, without gaps
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace foreshard {

struct StoredTensor {
  std::string name = {};
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  bool operator==(const StoredTensor&) const = default;

  std::int64_t elements() const;
};

// Throws Error if no file of this name can be created or replaced.
void expect_writable(const std::string& path);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using StdioFile = std::unique_ptr<std::FILE, CloseFile>;

// The data section of a file that is being written. Several processes may have the file open and write different elements at the same time.
// All functions throw DeviceError when writing fails.
class TensorPlaces {
 public:
  // `data`: offset in the file at which the data of the tensors begin.
  TensorPlaces(StdioFile file, std::string path, std::int64_t data, std::vector<StoredTensor> tensors);
  // Writes elements of a tensor, from element `first` on, rounded to the number format of the tensor.
  void write(std::size_t tensor, std::int64_t first, std::span<const double> elements);
  void put(const void* bytes, std::size_t count, std::int64_t at);  // writes bytes at an offset in the file
  void sync();                                                      // returns when all that this object wrote is on disk
  std::int64_t data() const { return data_; }
  std::int64_t size() const { return begin_.back(); }  // bytes of the whole file

 private:
  StdioFile file_;
  std::string path_;
  std::int64_t data_ = 0;  // offset of the end of the header
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begin_;  // [tensor]: offset in the file; then the end of the file
};

// Writes to a temporary file (NAME.part) and renames it at the end, so that a reader finds either the complete old file or the complete new
// one. The temporary file of an interrupted writer is overwritten by the next one.
class SafetensorsWriter {
 public:
  // Creates the temporary file and writes its header. Throws Error if it cannot be created, DeviceError if writing fails, as do the
  // functions below.
  SafetensorsWriter(std::string path, const std::vector<StoredTensor>& tensors,
                    const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  // Writes a random word of 16 bytes where the data will be, and returns it. With it, join_writer in another process finds out whether it
  // sees the same file. "": the file has fewer than 16 bytes of data.
  std::string mark();
  TensorPlaces& places() { return *places_; }
  // Called when all processes have written their elements: syncs the file to disk and renames it.
  void finish();

 private:
  struct Part {  // the temporary file; the destructor removes it unless it is finished
    std::string path = {};
    bool finished = false;
    ~Part();
  };
  std::string path_;
  Part part_;
  std::unique_ptr<TensorPlaces> places_;
};

// Opens the temporary file that a SafetensorsWriter in another process writes. `mark`: what its `mark` returned. Returns null if this
// process does not see that file, because the processes do not share a file system.
std::unique_ptr<TensorPlaces> join_writer(const std::string& path, const std::vector<StoredTensor>& tensors,
                                          const std::string& mark);

class SafetensorsFile {
 public:
  // Reads the header. Throws Error if the file is not a safetensors file or is truncated.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return place_.contains(name); }
  const StoredTensor& at(const std::string& name) const { return tensors_[place_.at(name)]; }
  // All elements of a tensor; it must be in the file. Throws Error if reading fails
  std::vector<double> read(const std::string& name);
  // Identifies the contents: differs for checkpoints of another run or step. Computed from the size of the file and 64 parts of 4 KiB,
  // among them the beginning of the header. "": reading fails
  std::string fingerprint();

 private:
  std::string path_;
  StdioFile file_;
  std::int64_t size_ = 0;
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begin_;  // [tensor]: offset in the file
  std::map<std::string, std::size_t> place_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace foreshard
