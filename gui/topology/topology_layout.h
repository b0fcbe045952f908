// Topology layout: one node drawn in full with the leaf switches of its rails and the spine, layer below layer, and every node as
// a cell of a strip. Plain rectangles and lines; deterministic.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QString>
#include <vector>

#include "core/network/network.h"
#include "gui/document/document.h"

namespace foreshard {

struct PartBox {
  QRectF box = {};
  PartKind kind = PartKind::Gpu;
  QString label = {}, note = {};  // "gpu 3"; "stage 2"
};

struct LinkLine {  // one direction of a link
  QPointF from = {}, to = {};
  LinkId link = {};
  std::int32_t link_class = -1;  // in Trace::links; -1: nothing crossed it
  double width = 1;              // logical pixels, by bandwidth
};

struct NodeCell {
  QRectF box = {};
  int node = 0;
};

struct TopologyPicture {
  std::vector<PartBox> parts = {};
  std::vector<LinkLine> lines = {};
  std::vector<NodeCell> nodes = {};
};

// [link]: its class in the trace, -1: none.
std::vector<std::int32_t> classes_of_links(const Document& document, const Network& network);

// [node]: the classes of links that its own links belong to.
std::vector<std::vector<std::int32_t>> classes_of_nodes(const Network& network, const std::vector<std::int32_t>& of_link);

TopologyPicture lay_topology(const Document& document, const Network& network, const std::vector<std::int32_t>& of_link,
                             int node, QRectF diagram, QRectF strip);

}  // namespace foreshard
