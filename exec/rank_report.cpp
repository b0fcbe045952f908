#include "exec/rank_report.h"

#include <cstring>

#include "core/error.h"

namespace foreshard {

namespace {

void put(std::string& text, std::int64_t number) { text.append(reinterpret_cast<const char*>(&number), sizeof number); }

std::string pack(const std::vector<RankReport>& reports, std::int64_t offset) {
  std::string text;
  for (const RankReport& report : reports) {
    put(text, static_cast<std::int64_t>(report.spans.size()));
    for (const StepSpan& span : report.spans)
      for (const std::int64_t time : {span.ready + offset, span.begin + offset, span.end + offset, span.own}) put(text, time);
    for (const Bytes bytes : report.peak) put(text, bytes.value);
  }
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}
  bool more() const { return at_ < text_.size(); }
  std::int64_t next() {
    std::int64_t number = 0;
    if (text_.size() - at_ < sizeof number) throw DeviceError("the run", "a report of another process that ends too early");
    std::memcpy(&number, text_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

void unpack(const std::string& text, std::vector<RankReport>& into) {
  Reader reader(text);
  while (reader.more()) {
    RankReport report;
    for (std::int64_t left = reader.next(); left > 0; --left) {
      StepSpan span;
      span.ready = reader.next(), span.begin = reader.next(), span.end = reader.next(), span.own = reader.next();
      report.spans.push_back(span);
    }
    for (Bytes& bytes : report.peak) bytes.value = reader.next();
    into.push_back(std::move(report));
  }
}

}  // namespace

std::vector<RankReport> gather_reports(ProcessMesh& mesh, const std::vector<RankReport>& own) {
  std::vector<RankReport> all;
  for (const std::string& part : mesh.gather(pack(own, mesh.clock_offset()))) unpack(part, all);
  return all;
}

}  // namespace foreshard
