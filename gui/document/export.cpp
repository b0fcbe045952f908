#include "gui/document/export.h"

#include <QBuffer>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgRenderer>
#include <QWidget>
#include <cmath>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/plan/plan_words.h"
#include "core/strategy/strategy_options.h"
#include "gui/widgets/drawn_hatches.h"
#include "report/pictures/svg.h"
#include "report/summary/memory_rows.h"
#include "report/words/span_words.h"
#include "report/words/text_table.h"

namespace foreshard {

std::optional<ExportKind> export_kind(const QString& file) {
  static const std::pair<const char*, ExportKind> ends[] = {{".png", ExportKind::Png},
                                                            {".svg", ExportKind::Svg},
                                                            {".pdf", ExportKind::Pdf},
                                                            {".html", ExportKind::Html},
                                                            {"stages.csv", ExportKind::StagesCsv},
                                                            {".csv", ExportKind::SpansCsv},
                                                            {".json", ExportKind::ChromeTrace}};
  for (const auto& [end, kind] : ends)
    if (file.endsWith(QLatin1String(end), Qt::CaseInsensitive)) return kind;
  return {};
}

std::string picture_svg(const Document& document) {
  return timeline_svg(document.result, document.summary,
                      {.title = document.model + " on " + document.cluster_name,
                       .subtitle = in_time(document.summary.iteration_time) + " per step, bubble " +
                                   in_percent(document.summary.bubble.fraction)});
}

static std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string spans_csv(const Document& document) {
  const Plan& plan = document.plan();
  const Trace& trace = document.trace();
  std::string out = "class,ranks,stream,action,instruction,count,ready_ns,begin_ns,end_ns\n";
  for (const Span& span : trace.spans) {
    const Role& role = role_of(plan, trace, span.who);
    out += cell(role.name) + ',' + std::to_string(trace.classes[span.who.index()].members.size()) + ',';
    out += cell(role.streams[span.stream.index()].name) + ',' + cell(action_name(plan, action_of(plan, trace, span))) + ',';
    out += cell(instruction_of(plan, trace, span).name) + ',' + std::to_string(span.count) + ',';
    out +=
        std::to_string(span.ready.value) + ',' + std::to_string(span.begin.value) + ',' + std::to_string(span.end.value) + '\n';
  }
  return out;
}

std::string stages_csv(const Document& document) {
  const Summary& summary = document.summary;
  std::string out = "role,bubble";
  for (int cause = 0; cause < kBubbleCauses; ++cause) out += ',' + cell(name_of(static_cast<BubbleCause>(cause)));
  for (int category = 0; category < kCategories; ++category)
    out += std::string(",") + word(static_cast<Category>(category)) + "_bytes";
  out += ",peak_bytes,arena_bytes,with_framework_bytes\n";  // the categories sum to the peak
  for (std::size_t i = 0; i < summary.memory.size(); ++i) {
    const StageMemory& stage = summary.memory[i];
    out += cell(stage.role) + ',' + (i < summary.bubble.per_stage.size() ? std::to_string(summary.bubble.per_stage[i]) : "");
    for (std::size_t cause = 0; cause < kBubbleCauses; ++cause)
      out += ',' + (i < summary.bubble.by_cause_per_stage.size() && cause < summary.bubble.by_cause_per_stage[i].size()
                        ? std::to_string(summary.bubble.by_cause_per_stage[i][cause])
                        : "");
    for (const Bytes bytes : peak_parts(summary, stage)) out += ',' + std::to_string(bytes.value);
    out += ',' + std::to_string(peak_of(summary, stage).value) + ',' + std::to_string(stage.arena.value) + ',' +
           std::to_string(stage.with_framework.value) + '\n';
  }
  return out;
}

static std::string escaped(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped().toStdString(); }

static std::string row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string out = "<tr>";
  for (const std::string& text : cells) out += std::string("<") + tag + ">" + escaped(text) + "</" + tag + ">";
  return out + "</tr>\n";
}

static std::string headline_table(const Document& document) {
  const Summary& s = document.summary;
  std::string out = "<table class=\"head\">\n";
  const StageMemory* fullest = fullest_stage(s);
  out += row({"step time", document.workload.tokens_per_sample > 0 ? "tokens/s" : "samples/s", "MFU", "bubble",
              "communication not hidden", "peak incl. framework", "of usable", "to spare"},
             "th");
  out += row({in_time(s.iteration_time), with_commas(s.tokens_per_s), in_percent(s.flops.model_utilization),
              in_percent(s.bubble.fraction), in_percent(s.communication.exposed),
              (fullest == nullptr ? "-" : in_gib_text(peak_of(s, *fullest))) + " GiB", in_gib_text(usable(s)) + " GiB",
              in_gib_text(s.fit.margin) + " GiB"});
  return out + "</table>\n";
}

static std::string causes_table(const Summary& s) {
  std::string out = "<h2>Why GPUs stand still</h2>\n<table>\n" + row({"cause", "share of the step"}, "th");
  for (std::size_t cause = 0; cause < s.bubble.by_cause.size(); ++cause)
    out += row({name_of(static_cast<BubbleCause>(cause)), in_percent(s.bubble.by_cause[cause])});
  return out + "</table>\n";
}

static std::string memory_table(const Summary& s) {
  std::string out = "<h2>Memory of each pipeline rank</h2>\n<table>\n";
  std::vector<std::string> head = {"GiB"};
  for (int category = 0; category < kCategories; ++category) head.emplace_back(word(static_cast<Category>(category)));
  head.insert(head.end(), {"peak incl. framework", "reserved arena"});
  out += row(head, "th");
  for (const StageMemory& stage : s.memory) {
    std::vector<std::string> cells = {stage.role};
    for (const Bytes bytes : peak_parts(s, stage)) cells.push_back(in_gib_text(bytes));
    cells.insert(cells.end(), {in_gib_text(peak_of(s, stage)), in_gib_text(stage.with_framework)});
    out += row(cells);
  }
  return out + "</table>\n";
}

static std::string links_table(const Summary& s) {
  std::string out = "<h2>Busiest links</h2>\n<table>\n" + row({"link", "how many", "use"}, "th");
  for (std::size_t i = 0; i < std::min<std::size_t>(s.links.size(), 12); ++i)
    out += row({s.links[i].name, std::to_string(s.links[i].links), in_percent(s.links[i].utilization)});
  return out + "</table>\n";
}

std::string html_report(const Document& document, const std::string& command) {
  const std::string title = escaped(document.model + " on " + document.cluster_name);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title +
      "</title>\n<style>\n"
      "body{font:15px/1.5 system-ui,sans-serif;max-width:1240px;margin:2em auto;padding:0 1em;color:#1e242c}\n"
      "table{border-collapse:collapse;margin:.6em 0}td,th{padding:.25em .8em;border-bottom:1px solid #dbe0e7;"
      "text-align:right}td:first-child,th:first-child{text-align:left}.head td{font-size:1.3em}\n"
      "code{background:#f4f6f9;padding:.6em 1em;display:block;overflow-wrap:anywhere}svg{max-width:100%;height:auto}\n"
      "</style></head><body>\n<h1>" +
      title + "</h1>\n";
  if (!document.summary.feasible) out += "<p><b>Does not fit:</b> " + escaped(document.summary.infeasible_reason) + "</p>\n";
  out += headline_table(document);
  std::string svg = picture_svg(document);
  if (const std::size_t begin = svg.find("<svg"); begin != std::string::npos) svg = svg.substr(begin);
  out += svg + causes_table(document.summary) + memory_table(document.summary) + links_table(document.summary);
  for (const std::string& remark : document.remarks) out += "<p>" + escaped(remark) + "</p>\n";
  if (!command.empty()) out += "<h2>Again</h2>\n<code>" + escaped(command) + "</code>\n";
  return out + "</body></html>\n";
}

void write_png(QWidget& widget, const QString& file, double scale) {
  QImage image((QSizeF(widget.size()) * scale).toSize(), QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(widget.palette().color(QPalette::Window));
  widget.render(&image);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (!image.save(&buffer, "PNG")) throw Error(file.toStdString(), "picture", "no PNG", "a picture that can be written");
  write_file(file.toStdString(), bytes.toStdString());
}

void write_pdf(const Document& document, const QString& file) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    writer.setTitle(QString::fromStdString(document.model + " on " + document.cluster_name));
    writer.setPageSize(QPageSize(QPageSize::A4));
    writer.setPageOrientation(QPageLayout::Landscape);
    writer.setPageMargins(QMarginsF(12, 12, 12, 12), QPageLayout::Millimeter);
    QSvgRenderer renderer(QByteArray::fromStdString(with_drawn_hatches(picture_svg(document))));  // Qt knows no patterns
    QPainter painter(&writer);
    const QSizeF page = QRectF(painter.viewport()).size();
    const QSizeF size = QSizeF(renderer.defaultSize()).scaled(page, Qt::KeepAspectRatio);
    renderer.render(&painter, QRectF(QPointF(0, 0), size));
  }
  write_file(file.toStdString(), bytes.toStdString());
}

}  // namespace foreshard
