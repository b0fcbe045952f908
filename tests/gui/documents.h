// Documents to test with: pipelines played by the plain player of tests/report.
#pragma once

#include <QImage>
#include <QSize>
#include <memory>
#include <string>
#include <utility>

#include "gui/document/document.h"
#include "gui/document/selection.h"
#include "gui/document/time_axis.h"
#include "tests/report/played.h"

namespace foreshard {

// 1F1B, four stages, eight micro-batches, two replicas: forward 1 ms, backward 2 ms, transfers 0.5 ms.
std::shared_ptr<const Document> pipeline_document(played::Fold fold = played::Fold::Roles, const played::Slow& slow = {});

// GPT-2 124M on two DGX A100, tp 2, pp 2, dp 4, lowered and simulated, one span per layer.
std::shared_ptr<const Document> simulated_document();

// The same with one span per operation.
std::shared_ptr<const Document> single_operations_document();

// A mixture of experts on eight GPUs, ep 4, unevenly loaded, with ZeRO 3: one span per operation.
std::shared_ptr<const Document> mixture_document();

// A view of a document, as a tab of the window has it.
template <class View>
struct Viewed {
  TimeAxis axis;
  Selection selection;
  View view{axis, selection};
  std::shared_ptr<const Document> document;

  Viewed(std::shared_ptr<const Document> of, QSize size) : document(std::move(of)) {
    view.resize(size);
    axis.set_extent({{0}, document->trace().makespan});
    view.set_document(document);
  }
};

std::string hash_of(const QImage& image);  // hexadecimal, of the pixels alone

}  // namespace foreshard
