// Files in the safetensors layout (huggingface/safetensors, "Format"): 8 bytes with the length of a JSON header, the header
// {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {text: text}}, then the data of the tensors, little-endian and
// row-major, without gaps.
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

// Throws Error when no file of this name can be made.
void expect_place(const std::string& path);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using StdioFile = std::unique_ptr<std::FILE, CloseFile>;

// A file that is being written, as one of its writers has it open: several processes may write their elements at once. Throws DeviceError when
// writing fails.
class TensorPlaces {
 public:
  TensorPlaces(StdioFile file, std::string path, std::int64_t data, std::vector<StoredTensor> tensors);
  void write(std::size_t tensor, std::int64_t first, std::span<const double> elements);  // rounded to its format
  void put(const void* bytes, std::size_t count, std::int64_t at);
  void sync();  // what was written here is on disk
  std::int64_t data() const { return data_; }
  std::int64_t size() const { return begin_.back(); }

 private:
  StdioFile file_;
  std::string path_;
  std::int64_t data_ = 0;  // where the header ends
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begin_;  // [tensor]: in the file; then its end
};

// Writes beside the file and renames at the end: whoever reads the name finds the old file or the new one, whole. What an
// interrupted writer leaves behind (NAME.part) is overwritten by the next.
class SafetensorsWriter {
 public:
  // Throws Error when the file cannot be made, DeviceError when writing fails; so does everything below.
  SafetensorsWriter(std::string path, const std::vector<StoredTensor>& tensors,
                    const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  // Puts a word where the data will be, by which another process knows that the file of this name is the same; "" where there is no room.
  std::string mark();
  TensorPlaces& places() { return *places_; }
  void finish();  // everything is written, by whomever: on disk, then under its name

 private:
  struct Part {  // what is not finished is removed
    std::string path = {};
    bool finished = false;
    ~Part();
  };
  std::string path_;
  Part part_;
  std::unique_ptr<TensorPlaces> places_;
};

// The file that another process's SafetensorsWriter writes under this name; none: this process does not see it.
std::unique_ptr<TensorPlaces> join_writer(const std::string& path, const std::vector<StoredTensor>& tensors,
                                          const std::string& mark);

class SafetensorsFile {
 public:
  // Reads the header. Throws Error for what is no such file, or a truncated one.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return place_.contains(name); }
  const StoredTensor& at(const std::string& name) const { return tensors_[place_.at(name)]; }
  std::vector<double> read(const std::string& name);  // throws Error
  // Tells this file from another one, of another run or step, too: of its size and of 64 parts of 4 KiB, the header among them.
  std::string fingerprint();

 private:
  std::string path_;
  StdioFile file_;
  std::int64_t size_ = 0;
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begin_;  // [tensor]: in the file
  std::map<std::string, std::size_t> place_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace foreshard
