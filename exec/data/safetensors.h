// Reads and writes files in the safetensors format (huggingface/safetensors, README, "Format"):
//
//   8 bytes    length of the header, little-endian
//   header     JSON: {"name": {"dtype", "shape", "data_offsets"}, ..., "__metadata__": {text: text, ...}}
//   data       of the tensors, little-endian and row-major, without gaps
//
// Files that we write have checksums (exec/base/checksum.h) in "__metadata__": "checksum.NAME" of every tensor, and "header_checksum" of length
// and header, in which the 16 digits of that checksum itself count as zeros.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/file_replacement.h"
#include "core/base/open_file.h"

namespace foreshard {

class JsonReader;

struct StoredTensor {
  std::string name = {};
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape = {};
  bool operator==(const StoredTensor&) const = default;

  std::int64_t elements() const;
};

// Throws Error if no file of this name can be created or replaced.
void expect_writable(const std::string& path);

// The data section of a file that is being written. Several processes may have the file open and write different elements at the same time.
// All functions throw DeviceError when writing fails.
class TensorPlaces {
 public:
  // `path`: for messages. `data`: offset in the file at which the data of the tensors begin.
  TensorPlaces(OpenFile file, std::string path, std::int64_t data, std::vector<StoredTensor> tensors);
  // Writes elements of a tensor, from element `first` on, rounded to the number format of the tensor.
  void write(std::size_t tensor, std::int64_t first, std::span<const double> elements);
  void put(const void* bytes, std::size_t count, std::int64_t at);  // writes bytes at an offset in the file
  void sync();                                                      // returns when all that this object wrote is on disk
  std::int64_t data() const { return data_; }
  std::int64_t size() const { return begin_.back(); }  // bytes of the whole file
  // [tensor]: what the elements that this object wrote add to its checksum.
  const std::vector<std::uint64_t>& checksums() const { return checksums_; }

 private:
  OpenFile file_;
  std::string path_;
  std::int64_t data_ = 0;  // offset of the end of the header
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begin_;  // [tensor]: offset in the file; then the end of the file
  std::vector<std::uint64_t> checksums_;
};

// Writes a file of tensors; the file is replaced at the end (core/base/file_replacement.h).
class SafetensorsWriter {
 public:
  // Creates the temporary file and writes its header. Throws Error if it cannot be created, DeviceError if writing fails, as do the
  // functions below.
  SafetensorsWriter(std::string path, const std::vector<StoredTensor>& tensors,
                    const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  // Writes a random word of 16 bytes where the data will be, and returns it with the name of the temporary file. With both, join_writer in
  // another process finds out whether it sees the same file. "": the file has fewer than 16 bytes of data.
  std::string mark();
  TensorPlaces& places() { return *places_; }
  // Called when all processes have written their elements: writes the checksums, syncs the file to disk and renames it. `checksums`: [tensor]
  // the sums over all processes; without them, this process has written everything.
  void finish(const std::vector<std::uint64_t>& checksums);
  void finish() { finish(places_->checksums()); }

 private:
  std::string path_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  FileReplacement file_;
  std::unique_ptr<TensorPlaces> places_;
};

// Opens the temporary file that a SafetensorsWriter in another process writes. `mark`: what its `mark` returned. Returns null if this
// process does not see that file, because the processes do not share a file system.
std::unique_ptr<TensorPlaces> join_writer(const std::string& path, const std::vector<StoredTensor>& tensors,
                                          const std::string& mark);

class SafetensorsFile {
 public:
  // Reads the header. Throws Error if the file is not a safetensors file, is truncated or has another checksum of its header.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // without checksums
  bool has_checksums() const { return has_checksums_; }
  bool has(const std::string& name) const { return place_.contains(name); }
  const StoredTensor& at(const std::string& name) const { return tensors_[place_.at(name)]; }
  // All elements of a tensor; it must be in the file. Throws Error if reading fails or the checksum is another one.
  std::vector<double> read(const std::string& name);
  void verify(const std::string& name);  // throws what `read` throws
  // Identifies the contents: differs for checkpoints of another run or step. Computed from the size of the file and 64 parts of 4 KiB,
  // among them the beginning of the header. "": reading fails
  std::string fingerprint();

 private:
  std::string header_text(std::int64_t length) const;
  void add_tensor(const std::string& name, const JsonReader& entry, std::int64_t data);
  void add_word(const std::string& key, const std::string& value);
  std::vector<std::byte> bytes(const std::string& name);  // checked
  bool read_at(void* into, std::size_t count, std::int64_t at) const;

  std::string path_;
  OpenFile file_;
  std::int64_t size_ = 0;
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begin_;  // [tensor]: offset in the file
  std::map<std::string, std::size_t> place_;
  std::map<std::string, std::string> metadata_;
  bool has_checksums_ = false;
  std::map<std::string, std::string> checksums_;  // [name of a tensor]: 16 digits
};

}  // namespace foreshard
