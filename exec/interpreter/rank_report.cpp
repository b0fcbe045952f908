#include "exec/interpreter/rank_report.h"

#include <cstring>

#include "core/base/error.h"
#include "exec/mesh/mesh_frame.h"

namespace foreshard {

namespace {

void put(std::string& text, std::int64_t number) { text.append(reinterpret_cast<const char*>(&number), sizeof number); }

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

}  // namespace

std::string packed_reports(const std::vector<RankReport>& reports, std::int64_t offset) {
  std::string text;
  for (const RankReport& report : reports) {
    put(text, static_cast<std::int64_t>(report.spans.size()));
    for (const StepSpan& span : report.spans)
      for (const std::int64_t number :
           {span.ready + offset, span.begin + offset, span.end + offset, span.own, std::int64_t{span.count}})
        put(text, number);
    for (const Bytes bytes : report.peak) put(text, bytes.value);
  }
  return text;
}

std::vector<RankReport> reports_of(const std::string& text, int ranks) {
  Reader reader(text);
  std::vector<RankReport> reports;
  while (reader.more()) {
    RankReport report;
    for (std::int64_t left = reader.next(); left > 0; --left) {
      StepSpan span;
      span.ready = reader.next(), span.begin = reader.next(), span.end = reader.next(), span.own = reader.next();
      for (const std::int64_t time : {span.ready, span.begin, span.end, span.own})
        if (time > kMostTime || time < -kMostTime)
          throw DeviceError("the run", "a report of another process with a time that is none");
      const std::int64_t count = reader.next();
      if (count < 0 || count > kMostJoined)
        throw DeviceError("the run", "a report of another process with " + std::to_string(count) + " instructions as one");
      span.count = static_cast<int>(count);
      report.spans.push_back(span);
    }
    for (Bytes& bytes : report.peak) bytes.value = reader.next();
    reports.push_back(std::move(report));
  }
  if (reports.size() != static_cast<std::size_t>(ranks))
    throw DeviceError("the run",
                      std::to_string(reports.size()) + " reports of a process of " + std::to_string(ranks) + " ranks");
  return reports;
}

std::vector<RankReport> gather_reports(ProcessMesh& mesh, const std::vector<RankReport>& own) {
  std::vector<RankReport> all;
  const std::vector<std::string> told = mesh.gather(packed_reports(own, mesh.clock_offset()));
  for (int p = 0; p < static_cast<int>(told.size()); ++p)
    for (RankReport& report : reports_of(told[static_cast<std::size_t>(p)], mesh.first_rank(p + 1) - mesh.first_rank(p)))
      all.push_back(std::move(report));
  return all;
}

}  // namespace foreshard
