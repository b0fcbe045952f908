// Words for enumerators, quantities and names of a plan, in the language of the window.
#pragma once

#include <QString>

#include "core/plan/plan.h"
#include "core/result/summary.h"
#include "core/result/trace.h"
#include "report/causes/critical_path.h"
#include "report/words/palette.h"

namespace foreshard {

struct Document;

QString cause_words(BubbleCause cause);
QString cause_explained(BubbleCause cause);  // a sentence
QString category_words(Category category);
QString bytes_words(Bytes bytes);                    // "12.3 GiB"
QString gib_words(Bytes bytes);                      // "12.3"
QString percent_words(double share);                 // "12.3 %"
QString count_words(std::int64_t count);             // "154 134": a thin space separates thousands
QString number_words(double number);                 // three significant digits, never an exponent
QString instruction_words(const std::string& name);  // translated: "receive gradient"; an operator keeps its name
QString peak_words(const Summary& summary, const StageMemory& stage);  // "47.3 of 75.2 GiB usable"
QString too_much_words(const Summary& summary);                        // which stage does not fit, and by how much
QString rate_words(const Document& document);   // "tokens per second"; "samples ..." for a model without tokens
QString device_text(const Document& document);  // the device of its times: "a100-80", "an unknown device"
QString rich_words(const QString& text);        // escaped for HTML, with no line break inside a number
QString path_words(PathKind kind);              // "transfers"
QString role_words(const std::string& name);    // translated: "stage 3"
QString class_words(const Plan& plan, const Trace& trace, ClassId who);  // "stage 3 (64 ranks)"

}  // namespace foreshard
