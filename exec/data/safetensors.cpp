#include "exec/data/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <random>

#include "core/base/error.h"
#include "core/json/json.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/base/philox.h"

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

void expect_writable(const std::string& path) {
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

namespace {

[[noreturn]] void fail(const std::string& call) {
  throw DeviceError(call, std::string(std::strerror(errno)) + "; an earlier file of this name is untouched");
}

constexpr std::size_t kMark = 16;

}  // namespace

TensorPlaces::TensorPlaces(StdioFile file, std::string path, std::int64_t data, std::vector<StoredTensor> tensors)
    : file_(std::move(file)), path_(std::move(path)), data_(data), tensors_(std::move(tensors)), begin_{data} {
  for (const StoredTensor& tensor : tensors_) begin_.push_back(begin_.back() + bytes_of(tensor));
}

void TensorPlaces::put(const void* bytes, std::size_t count, std::int64_t at) {
  for (std::size_t done = 0; done < count;) {
    const auto* from = static_cast<const char*>(bytes) + done;
    const ssize_t now = ::pwrite(::fileno(file_.get()), from, count - done, at + static_cast<std::int64_t>(done));
    if (now < 0 && errno != EINTR) fail("write of " + path_);
    done += static_cast<std::size_t>(std::max<ssize_t>(now, 0));
  }
}

void TensorPlaces::write(std::size_t tensor, std::int64_t first, std::span<const double> elements) {
  const auto count = static_cast<std::int64_t>(elements.size());
  const DType dtype = tensors_.at(tensor).dtype;
  FS_ASSERT(first >= 0 && first + count <= tensors_[tensor].elements());
  std::vector<std::byte> bytes(static_cast<std::size_t>(size_of(dtype).value * count));
  host::store(elements.data(), count, {bytes.data(), count, dtype}, 0);
  put(bytes.data(), bytes.size(), begin_[tensor] + size_of(dtype).value * first);
}

void TensorPlaces::sync() {
  if (::fsync(::fileno(file_.get())) != 0) fail("write of " + path_);
}

SafetensorsWriter::SafetensorsWriter(std::string path, const std::vector<StoredTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)) {
  expect_writable(path_);
  const std::string part = path_ + ".part";
  StdioFile file(std::fopen(part.c_str(), "wb"));
  if (!file) throw Error(part, "", std::strerror(errno), "a file that can be written");
  part_.path = part;
  const std::string header = header_of(tensors, metadata);
  const auto length = static_cast<std::uint64_t>(header.size());
  places_ = std::make_unique<TensorPlaces>(std::move(file), part, static_cast<std::int64_t>(sizeof length + length), tensors);
  places_->put(&length, sizeof length, 0);
  places_->put(header.data(), header.size(), sizeof length);
}

SafetensorsWriter::Part::~Part() {
  if (!path.empty() && !finished) ::unlink(path.c_str());
}

std::string SafetensorsWriter::mark() {
  if (places_->size() - places_->data() < static_cast<std::int64_t>(kMark)) return "";
  std::random_device random;
  std::string word;
  while (word.size() < kMark) word += static_cast<char>(random());
  places_->put(word.data(), word.size(), places_->data());
  places_->sync();
  return word;
}

void SafetensorsWriter::finish() {
  places_->sync();
  if (::rename(part_.path.c_str(), path_.c_str()) != 0) fail("rename of " + part_.path);
  part_.finished = true;
  // Syncs the folder, so that the new name survives a power failure too.
  if (const int at = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    ::fsync(at);
    ::close(at);
  }
}

std::unique_ptr<TensorPlaces> join_writer(const std::string& path, const std::vector<StoredTensor>& tensors,
                                          const std::string& mark) {
  const std::string part = path + ".part";
  StdioFile file(mark.empty() ? nullptr : std::fopen(part.c_str(), "r+b"));
  std::uint64_t length = 0;
  if (!file || std::fread(&length, 1, sizeof length, file.get()) != sizeof length) return nullptr;
  const auto data = static_cast<std::int64_t>(sizeof length + length);
  std::string found(mark.size(), '\0');
  const ssize_t count = ::pread(::fileno(file.get()), found.data(), found.size(), data);
  if (count != static_cast<ssize_t>(mark.size()) || found != mark) return nullptr;
  return std::make_unique<TensorPlaces>(std::move(file), part, data, tensors);
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb")) {
  if (!file_) throw Error(path_, "", std::strerror(errno), "a checkpoint that can be read");
  struct stat status = {};
  const std::int64_t size = size_ = ::fstat(::fileno(file_.get()), &status) == 0 ? status.st_size : 0;
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
    double elements = 1;  // in double, because the product of wrong sizes may overflow an integer
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

std::string SafetensorsFile::fingerprint() {
  constexpr std::int64_t kParts = 64, kPart = 4096;
  std::string text = std::to_string(size_) + " ";
  std::string part(kPart, ' ');
  for (std::int64_t p = 0; p < kParts; ++p) {
    if (::fseeko(file_.get(), std::max<std::int64_t>(size_ - kPart, 0) * p / (kParts - 1), SEEK_SET) != 0) return "";
    text.append(part, 0, std::fread(part.data(), 1, part.size(), file_.get()));
  }
  return std::to_string(size_) + " " + std::to_string(name_key(text));
}

}  // namespace foreshard
