// Export: what is shown as files for others: pictures, a report, tables, a Chrome trace. All throw Error when the file cannot be
// written.
#pragma once

#include <QString>
#include <optional>
#include <string>

#include "gui/document/choices.h"
#include "gui/document/document.h"

class QWidget;

namespace foreshard {

enum class ExportKind : std::uint8_t { Png, Svg, Pdf, Html, SpansCsv, StagesCsv, ChromeTrace };

// By the end of the name: png, svg, pdf, html, spans.csv, stages.csv (csv alone: spans), json (Chrome trace); none: another one.
std::optional<ExportKind> export_kind(const QString& file);

// Timeline and memory as vectors, drawn anew for print.
std::string picture_svg(const Document& document);
// One self-contained page: headline, picture, causes of bubbles, stages, memory, links, and the command that makes it again.
std::string html_report(const Document& document, const std::string& command);
// One row per span: class, ranks, stream, action, instruction, count, ready_ns, begin_ns, end_ns.
std::string spans_csv(const Document& document);
// One row per pipeline rank: bubbles by cause, memory by category.
std::string stages_csv(const Document& document);

void write_png(QWidget& widget, const QString& file, double scale);
void write_pdf(const Document& document, const QString& file);

}  // namespace foreshard
