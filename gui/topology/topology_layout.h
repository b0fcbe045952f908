// Topology layout: the places of one node with all its parts, of the leaf switches of its rails and of the spine, in layers from top to
// bottom, and of all nodes as cells of a strip. Only rectangles and lines, in logical pixels; deterministic.
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
  QString label = {}, note = {};  // label: "gpu 3"; note: what runs there, "stage 2"
};

struct LinkLine {  // one direction of a link
  QPointF from = {}, to = {};
  LinkId link = {};
  std::int32_t link_class = -1;  // in Trace::links; -1: nothing crossed it
  double width = 1;              // logical pixels, larger for more bandwidth
};

struct NodeCell {  // a node in the strip
  QRectF box = {};
  int node = 0;
};

struct TopologyPicture {
  std::vector<PartBox> parts = {};
  std::vector<LinkLine> lines = {};
  std::vector<NodeCell> nodes = {};
};

// [link of the network]: index of its class in Trace::links; -1: none.
std::vector<std::int32_t> classes_of_links(const Document& document, const Network& network);

// [node]: the classes in Trace::links that the links of the node belong to. `of_link`: from classes_of_links.
std::vector<std::vector<std::int32_t>> classes_of_nodes(const Network& network, const std::vector<std::int32_t>& of_link);

// Draws `node` in full into `diagram` and all nodes into `strip`.
TopologyPicture lay_topology(const Document& document, const Network& network, const std::vector<std::int32_t>& of_link,
                             int node, QRectF diagram, QRectF strip);

}  // namespace foreshard
