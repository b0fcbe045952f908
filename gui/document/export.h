// Export: a document as a picture, a report, a table or a Chrome trace. The functions that write a file throw Error if they cannot.
#pragma once

#include <QString>
#include <optional>
#include <string>

#include "gui/document/choices.h"
#include "gui/document/document.h"

class QWidget;

namespace foreshard {

enum class ExportKind : std::uint8_t { Png, Svg, Pdf, Html, SpansCsv, StagesCsv, ChromeTrace };

// By the suffix of the file name: png, svg, pdf, html, spans.csv, stages.csv (another csv: spans), json (Chrome trace). None: any other
// suffix.
std::optional<ExportKind> export_kind(const QString& file);

// Timeline and memory timeline as the text of an SVG file, laid out for print.
std::string picture_svg(const Document& document);
// One self-contained HTML page: headline, picture, causes of bubbles, stages, memory, links, and `command`, the command line that
// reproduces the result.
std::string html_report(const Document& document, const std::string& command);
// Text of a CSV file with one row per span: class, ranks, stream, action, instruction, count, ready_ns, begin_ns, end_ns.
std::string spans_csv(const Document& document);
// Text of a CSV file with one row per pipeline rank: bubbles by cause, memory by category.
std::string stages_csv(const Document& document);

void write_png(QWidget& widget, const QString& file, double scale);  // `scale`: device pixels per logical pixel
void write_pdf(const Document& document, const QString& file);

}  // namespace foreshard
