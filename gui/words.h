// The words of closed sets in the language of the window.
#pragma once

#include <QString>

#include "core/plan.h"
#include "core/summary.h"
#include "core/trace.h"
#include "report/palette.h"

namespace foreshard {

QString cause_words(BubbleCause cause);
QString cause_explained(BubbleCause cause);  // a sentence
QString category_words(Category category);
QString bytes_words(Bytes bytes);                                        // "12.3 GiB"
QString percent_words(double share);                                     // "12.3 %"
QString role_words(const std::string& name);                             // "stage 3" in the language of the window
QString class_words(const Plan& plan, const Trace& trace, ClassId who);  // "stage 3 (64 ranks)"

}  // namespace foreshard
