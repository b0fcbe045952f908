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
#include "exec/base/checksum.h"
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

constexpr const char* kHeaderChecksum = "header_checksum";
const std::string kChecksum = "checksum.", kNoChecksum(kChecksumDigits, '0');

// The header, with zeros for its own checksum.
std::string header_of(const std::vector<StoredTensor>& tensors, const std::map<std::string, std::string>& metadata,
                      const std::vector<std::uint64_t>& checksums) {
  JsonWriter json(0);
  json.begin_object().key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) json.field(key, value);
  json.field(kHeaderChecksum, kNoChecksum);
  for (std::size_t i = 0; i < tensors.size(); ++i) json.field(kChecksum + tensors[i].name, checksum_text(checksums[i]));
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

// Where the 16 digits of the header's own checksum stand in it; npos: nowhere.
std::size_t place_of_header_checksum(const std::string& header) {
  const std::string key = std::string("\"") + kHeaderChecksum + "\"";
  const std::size_t at = header.find(key);
  if (at == std::string::npos) return at;
  const std::size_t digits = header.find('"', at + key.size());
  return digits == std::string::npos || digits + 1 + kChecksumDigits > header.size() ? std::string::npos : digits + 1;
}

// `place`: of the header's own checksum.
std::string header_checksum(std::string header, std::size_t place) {
  header.replace(place, kChecksumDigits, kNoChecksum);
  const std::uint64_t length = header.size();
  return checksum_text(checksum_of_text(std::string(reinterpret_cast<const char*>(&length), sizeof length) + header));
}

}  // namespace

void expect_writable(const std::string& path) {
  const std::string target = link_target(path);
  struct stat status = {};
  const bool there = ::stat(target.c_str(), &status) == 0;
  if (there && !S_ISREG(status.st_mode)) throw Error(path, "", "something else than a file", "the name of a file");
  if ((!there && errno == ENAMETOOLONG) || ::access(folder_of_file(target).c_str(), W_OK) != 0)
    throw Error(path, "", std::strerror(errno), "a file that can be written");
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

std::string writable(std::string path) {
  expect_writable(path);
  return path;
}

}  // namespace

TensorPlaces::TensorPlaces(OpenFile file, std::string path, std::int64_t data, std::vector<StoredTensor> tensors)
    : file_(std::move(file)),
      path_(std::move(path)),
      data_(data),
      tensors_(std::move(tensors)),
      begin_{data},
      checksums_(tensors_.size()) {
  for (const StoredTensor& tensor : tensors_) begin_.push_back(begin_.back() + bytes_of(tensor));
}

void TensorPlaces::put(const void* bytes, std::size_t count, std::int64_t at) {
  for (std::size_t done = 0; done < count;) {
    const auto* from = static_cast<const char*>(bytes) + done;
    const ssize_t now = ::pwrite(file_.descriptor(), from, count - done, at + static_cast<std::int64_t>(done));
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
  checksums_[tensor] += checksum_of_elements(first, bytes, static_cast<std::size_t>(size_of(dtype).value));
}

void TensorPlaces::sync() {
  if (::fsync(file_.descriptor()) != 0) fail("write of " + path_);
}

SafetensorsWriter::SafetensorsWriter(std::string path, const std::vector<StoredTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(writable(std::move(path))), tensors_(tensors), metadata_(metadata), file_(path_) {
  const std::string header = header_of(tensors_, metadata_, std::vector<std::uint64_t>(tensors_.size()));
  const auto length = static_cast<std::uint64_t>(header.size());
  OpenFile same(::fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!same.open()) fail("write of " + path_);
  places_ = std::make_unique<TensorPlaces>(std::move(same), path_, static_cast<std::int64_t>(sizeof length + length), tensors_);
  places_->put(&length, sizeof length, 0);
  places_->put(header.data(), header.size(), sizeof length);
}

std::string SafetensorsWriter::mark() {
  if (places_->size() - places_->data() < static_cast<std::int64_t>(kMark)) return "";
  std::random_device random;
  std::string word;
  while (word.size() < kMark) word += static_cast<char>(random());
  places_->put(word.data(), word.size(), places_->data());
  places_->sync();
  return word + file_.temporary().substr(file_.temporary().rfind('/') + 1);  // npos + 1 is 0
}

void SafetensorsWriter::finish(const std::vector<std::uint64_t>& checksums) {
  std::string header = header_of(tensors_, metadata_, checksums);  // as long as the first one
  const std::size_t place = place_of_header_checksum(header);
  FS_ASSERT(place != std::string::npos && checksums.size() == tensors_.size());
  header.replace(place, kChecksumDigits, header_checksum(header, place));
  places_->put(header.data(), header.size(), sizeof(std::uint64_t));
  if (!file_.finish()) fail("write of " + path_);
}

std::unique_ptr<TensorPlaces> join_writer(const std::string& path, const std::vector<StoredTensor>& tensors,
                                          const std::string& mark) {
  const std::string word = mark.substr(0, kMark), name = mark.substr(word.size());
  if (name.empty() || name.find('/') != std::string::npos) return nullptr;
  const std::string target = link_target(path), part = target.substr(0, target.rfind('/') + 1) + name;
  OpenFile file(::open(part.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::uint64_t length = 0;
  if (!file.open() || ::pread(file.descriptor(), &length, sizeof length, 0) != sizeof length) return nullptr;
  const auto data = static_cast<std::int64_t>(sizeof length + length);
  std::string found(word.size(), '\0');
  const ssize_t count = ::pread(file.descriptor(), found.data(), found.size(), data);
  if (count != static_cast<ssize_t>(word.size()) || found != word) return nullptr;
  return std::make_unique<TensorPlaces>(std::move(file), path, data, tensors);
}

SafetensorsFile::SafetensorsFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!file_.open()) throw Error(path_, "", std::strerror(errno), "a checkpoint that can be read");
  struct stat status = {};
  size_ = ::fstat(file_.descriptor(), &status) == 0 ? status.st_size : 0;
  std::uint64_t length = 0;
  if (!read_at(&length, sizeof length, 0))
    throw Error(path_, "", std::to_string(size_) + " bytes", "a safetensors file: at least 8 bytes");
  if (length > static_cast<std::uint64_t>(std::min(kLongestHeader, size_ - 8)))
    throw Error(path_, "", "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(size_),
                "a whole safetensors file");
  const std::string header = header_text(static_cast<std::int64_t>(length));
  const JsonReader json = JsonReader::parse(header, path_);
  for (const auto& [name, entry] : json.members()) {
    if (name == "__metadata__")
      for (const auto& [key, value] : entry.members()) add_word(key, value.as_string());
    else
      add_tensor(name, entry, 8 + static_cast<std::int64_t>(length));
  }
  if (!has_checksums_ && !checksums_.empty())
    throw Error(path_, std::string("__metadata__.") + kHeaderChecksum, "nothing", "a checksum: the file is damaged");
  for (const StoredTensor& tensor : tensors_)
    if (has_checksums_ && !checksums_.contains(tensor.name))
      throw Error(path_, "__metadata__." + kChecksum + tensor.name, "nothing", "a checksum: the file is damaged");
}

// The header, whose checksum is right if it has one.
std::string SafetensorsFile::header_text(std::int64_t length) const {
  std::string header(static_cast<std::size_t>(length), ' ');
  if (!read_at(header.data(), header.size(), 8)) throw Error(path_, "", "an end within the header", "a whole safetensors file");
  const std::size_t place = place_of_header_checksum(header);
  if (place == std::string::npos) return header;
  const std::string found = header_checksum(header, place), expected = header.substr(place, kChecksumDigits);
  if (found != expected) throw Error(path_, "header", "checksum " + found, expected + ", as it was saved: the file is damaged");
  return header;
}

void SafetensorsFile::add_word(const std::string& key, const std::string& value) {
  if (key == kHeaderChecksum)
    has_checksums_ = true;
  else if (key.starts_with(kChecksum))
    checksums_[key.substr(kChecksum.size())] = value;
  else
    metadata_[key] = value;
}

// `data`: offset in the file of the end of the header.
void SafetensorsFile::add_tensor(const std::string& name, const JsonReader& entry, std::int64_t data) {
  StoredTensor tensor{.name = name, .shape = entry.at("shape").as_ints(0, INT32_MAX)};
  std::vector<std::string> words;
  for (const auto& [word, dtype] : format_words()) words.push_back(word);
  const std::string format = entry.at("dtype").as_choice(words);
  for (const auto& [word, dtype] : format_words())
    if (word == format) tensor.dtype = dtype;
  const std::vector<std::int64_t> offsets = entry.at("data_offsets").as_ints(0, INT64_MAX);
  if (offsets.size() == 2 && std::max(offsets[0], offsets[1]) > size_ - data)
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

bool SafetensorsFile::read_at(void* into, std::size_t count, std::int64_t at) const {
  for (std::size_t done = 0; done < count;) {
    const ssize_t now =
        ::pread(file_.descriptor(), static_cast<char*>(into) + done, count - done, at + static_cast<std::int64_t>(done));
    if (now == 0 || (now < 0 && errno != EINTR)) return false;
    done += static_cast<std::size_t>(std::max<ssize_t>(now, 0));
  }
  return true;
}

std::vector<std::byte> SafetensorsFile::bytes(const std::string& name) {
  const std::size_t index = place_.at(name);
  const StoredTensor& tensor = tensors_[index];
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of(tensor)));
  if (!read_at(bytes.data(), bytes.size(), begin_[index]))
    throw Error(path_, name, "an end within its data", "a whole safetensors file");
  if (!has_checksums_) return bytes;
  const auto width = static_cast<std::size_t>(size_of(tensor.dtype).value);
  const std::string found = checksum_text(checksum_of_elements(0, bytes, width)), &expected = checksums_.at(name);
  if (found != expected) throw Error(path_, name, "checksum " + found, expected + ", as it was saved: the file is damaged");
  return bytes;
}

void SafetensorsFile::verify(const std::string& name) { static_cast<void>(bytes(name)); }

std::vector<double> SafetensorsFile::read(const std::string& name) {
  const StoredTensor& tensor = at(name);
  std::vector<std::byte> stored = bytes(name);
  std::vector<double> elements(static_cast<std::size_t>(tensor.elements()));
  host::load({stored.data(), tensor.elements(), tensor.dtype}, 0, tensor.elements(), elements.data());
  return elements;
}

std::string SafetensorsFile::fingerprint() {
  constexpr std::int64_t kParts = 64, kPart = 4096;
  std::string text = std::to_string(size_) + " ";
  std::string part(static_cast<std::size_t>(std::min(kPart, size_)), ' ');
  for (std::int64_t p = 0; p < kParts; ++p) {
    if (!read_at(part.data(), part.size(), std::max<std::int64_t>(size_ - kPart, 0) * p / (kParts - 1))) return "";
    text += part;
  }
  return std::to_string(size_) + " " + std::to_string(name_key(text));
}

}  // namespace foreshard
