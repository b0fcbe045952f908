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

// Writes beside the file and renames at the end: whoever reads the name finds the old file or the new one, whole. What an
// interrupted writer leaves behind (NAME.part) is overwritten by the next.
class SafetensorsWriter {
 public:
  // Throws Error when the file cannot be made, DeviceError when writing fails; so does everything below.
  SafetensorsWriter(std::string path, const std::vector<StoredTensor>& tensors,
                    const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  void write(std::span<const double> elements);  // the next tensor, rounded to its format
  void finish();                                 // all tensors are written: on disk, then under its name

 private:
  void put(const void* data, std::size_t bytes);
  [[noreturn]] void fail(const std::string& call);

  struct Part {  // what is not finished is removed
    std::string path = {};
    bool finished = false;
    ~Part();
  };
  std::string path_;
  Part part_;
  std::vector<StoredTensor> tensors_;
  std::size_t next_ = 0;
  StdioFile file_;
};

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

 private:
  std::string path_;
  StdioFile file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::int64_t> begin_;  // [tensor]: in the file
  std::map<std::string, std::size_t> place_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace foreshard
