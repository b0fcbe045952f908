#include "exec/data/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/json/json.h"
#include "exec/host/host_convert.h"

namespace foreshard {

namespace {

static_assert(std::endian::native == std::endian::little, "data is written as it lies in memory");

constexpr std::int64_t kLongestHeader = 100'000'000;  // as in the reference implementation

const std::vector<std::pair<std::string, DType>>& format_words() {
  static const std::vector<std::pair<std::string, DType>> words = {
      {"F64", DType::F64}, {"F32", DType::F32}, {"F16", DType::F16}, {"BF16", DType::BF16}};
  return words;
}

std::string word_of(DType dtype) {
  for (const auto& [word, known] : format_words())
    if (known == dtype) return word;
  return "F32";  // tf32 is stored as fp32
}

std::int64_t bytes_of(const StoredTensor& tensor) { return size_of(tensor.dtype).value * tensor.elements(); }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string header_of(const std::vector<StoredTensor>& tensors, const std::map<std::string, std::string>& metadata) {
  JsonWriter json(0);
  json.begin_object().key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) json.field(key, value);
  json.end_object();
  std::int64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    json.key(tensor.name).begin_object().field("dtype", word_of(tensor.dtype)).key("shape").begin_array();
    for (const std::int64_t dim : tensor.shape) json.value(dim);
    json.end_array().key("data_offsets").begin_array().value(at).value(at + bytes_of(tensor)).end_array().end_object();
    at += bytes_of(tensor);
  }
  std::string text = json.end_object().text();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins at a multiple of 8
  return text;
}

}  // namespace

void expect_place(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw Error(path, "", "something else than a file", "the name of a file");
  if (::access(folder_of(path).c_str(), W_OK) != 0) throw Error(path, "", std::strerror(errno), "a file that can be written");
}

std::int64_t StoredTensor::elements() const {
  std::int64_t size = 1;
  for (const std::int64_t dim : shape) size *= dim;
  return size;
}

SafetensorsWriter::SafetensorsWriter(std::string path, const std::vector<StoredTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), tensors_(tensors) {
  expect_place(path_);
  const std::string part = path_ + ".part";
  file_.reset(std::fopen(part.c_str(), "wb"));
  if (!file_) throw Error(part, "", std::strerror(errno), "a file that can be written");
  part_.path = part;
  const std::string header = header_of(tensors_, metadata);
  const auto length = static_cast<std::uint64_t>(header.size());
  put(&length, sizeof length);
  put(header.data(), header.size());
}

SafetensorsWriter::Part::~Part() {
  if (!path.empty() && !finished) ::unlink(path.c_str());
}

void SafetensorsWriter::fail(const std::string& call) {
  throw DeviceError(call, std::string(std::strerror(errno)) + "; an earlier file of this name is untouched");
}

void SafetensorsWriter::put(const void* data, std::size_t bytes) {
  if (bytes > 0 && std::fwrite(data, 1, bytes, file_.get()) != bytes) fail("write of " + part_.path);
}

void SafetensorsWriter::write(std::span<const double> elements) {
  FS_ASSERT(next_ < tensors_.size());
  const StoredTensor& tensor = tensors_[next_++];
  FS_ASSERT(static_cast<std::int64_t>(elements.size()) == tensor.elements());
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(tensor)));
  host::store(elements.data(), tensor.elements(), {bytes.data(), tensor.elements(), tensor.dtype}, 0);
  put(bytes.data(), bytes.size());
}

void SafetensorsWriter::finish() {
  FS_ASSERT(next_ == tensors_.size());
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) fail("write of " + part_.path);
  if (::rename(part_.path.c_str(), path_.c_str()) != 0) fail("rename of " + part_.path);
  part_.finished = true;
  // The new name, too, has to survive a power failure.
  if (const int at = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    ::fsync(at);
    ::close(at);
  }
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb")) {
  if (!file_) throw Error(path_, "", std::strerror(errno), "a checkpoint that can be read");
  struct stat status = {};
  const std::int64_t size = ::fstat(::fileno(file_.get()), &status) == 0 ? status.st_size : 0;
  std::uint64_t length = 0;
  if (std::fread(&length, 1, sizeof length, file_.get()) != sizeof length)
    throw Error(path_, "", std::to_string(size) + " bytes", "a safetensors file: at least 8 bytes");
  if (length > static_cast<std::uint64_t>(std::min(kLongestHeader, size - 8)))
    throw Error(path_, "", "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(size),
                "a whole safetensors file");
  std::string header(length, ' ');
  if (std::fread(header.data(), 1, length, file_.get()) != length)
    throw Error(path_, "", "an end within the header", "a whole safetensors file");
  const JsonReader json = JsonReader::parse(header, path_);
  const std::int64_t data = 8 + static_cast<std::int64_t>(length);
  for (const auto& [name, entry] : json.members()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.members()) metadata_[key] = value.as_string();
      continue;
    }
    StoredTensor tensor{.name = name, .shape = entry.at("shape").as_ints(0, INT32_MAX)};
    std::vector<std::string> words;
    for (const auto& [word, dtype] : format_words()) words.push_back(word);
    const std::string format = entry.at("dtype").as_choice(words);
    for (const auto& [word, dtype] : format_words())
      if (word == format) tensor.dtype = dtype;
    const std::vector<std::int64_t> offsets = entry.at("data_offsets").as_ints(0, INT64_MAX);
    if (offsets.size() == 2 && std::max(offsets[0], offsets[1]) > size - data)
      throw Error(path_, name, "an end within its data", "a whole safetensors file");
    double elements = 1;  // in double: the product of wrong sizes may not fit
    for (const std::int64_t dim : tensor.shape) elements *= static_cast<double>(dim);
    if (offsets.size() != 2 ||
        static_cast<double>(offsets[1] - offsets[0]) != elements * static_cast<double>(size_of(tensor.dtype).value))
      entry.at("data_offsets").fail("begin and end of the bytes that dtype and shape need");
    place_[name] = tensors_.size();
    begin_.push_back(data + offsets[0]);
    tensors_.push_back(std::move(tensor));
  }
}

std::vector<double> SafetensorsFile::read(const std::string& name) {
  const std::size_t index = place_.at(name);
  const StoredTensor& tensor = tensors_[index];
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(tensor)));
  if (::fseeko(file_.get(), begin_[index], SEEK_SET) != 0 ||
      std::fread(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    throw Error(path_, name, "an end within its data", "a whole safetensors file");
  std::vector<double> elements(static_cast<std::size_t>(tensor.elements()));
  host::load({bytes.data(), tensor.elements(), tensor.dtype}, 0, tensor.elements(), elements.data());
  return elements;
}

}  // namespace foreshard
