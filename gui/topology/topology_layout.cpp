#include "gui/topology/topology_layout.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/plan/ranks.h"
#include "gui/document/words.h"

namespace foreshard {

std::vector<std::int32_t> classes_of_links(const Document& document, const Network& network) {
  std::vector<std::int32_t> of(static_cast<std::size_t>(network.links()), -1);
  for (std::size_t c = 0; c < document.trace().links.size(); ++c)
    for (const LinkId link : document.trace().links[c].links)
      if (link.valid() && link.index() < of.size()) of[link.index()] = static_cast<std::int32_t>(c);
  return of;
}

static int links_of_node(const Network& network, int node) {
  const NodeShape& shape = network.node_shape(node);
  return 2 * static_cast<int>(shape.links.size()) + 2 * shape.nics;
}

std::vector<std::vector<std::int32_t>> classes_of_nodes(const Network& network, const std::vector<std::int32_t>& of_link) {
  std::vector<std::vector<std::int32_t>> nodes(static_cast<std::size_t>(network.nodes()));
  for (int node = 0; node < network.nodes(); ++node) {
    const int first = network.first_link(node).value;
    for (int l = first; l < first + links_of_node(network, node); ++l)
      if (const std::int32_t c = of_link[static_cast<std::size_t>(l)]; c >= 0)
        nodes[static_cast<std::size_t>(node)].push_back(c);
  }
  return nodes;
}

namespace {

enum Layer : std::uint8_t { kSpine, kLeaf, kNic, kPcie, kGpu, kSwitch, kHost, kLayers };

Layer layer_of(PartKind kind) {
  switch (kind) {
    case PartKind::Gpu: return kGpu;
    case PartKind::NvSwitch: return kSwitch;
    case PartKind::PcieSwitch: return kPcie;
    case PartKind::Cpu:
    case PartKind::Dram:
    case PartKind::Nvme: return kHost;
    case PartKind::Nic: return kNic;
    case PartKind::Leaf: return kLeaf;
    case PartKind::Spine:
    case PartKind::Core: return kSpine;
  }
  return kGpu;
}

class TopologyDrawing {
 public:
  TopologyDrawing(const Document& document, const Network& network, const std::vector<std::int32_t>& of_link, int node)
      : document_(document), network_(network), of_link_(of_link), node_(node), shape_(network.node_shape(node)) {
    for (const NodeLink& link : shape_.links) widest_ = std::max(widest_, link.bandwidth.value);
  }

  TopologyPicture draw(QRectF diagram, QRectF strip) {
    place_parts(diagram);
    const int first = network_.first_link(node_).value;
    for (std::size_t l = 0; l < shape_.links.size(); ++l) {
      const NodeLink& link = shape_.links[l];
      for (int down = 0; down < 2; ++down)
        line(down ? link.to : link.from, down ? link.from : link.to, {first + 2 * static_cast<int>(l) + down});
    }
    fabric(first + 2 * static_cast<int>(shape_.links.size()));
    cells(strip);
    return std::move(picture_);
  }

 private:
  void place_parts(QRectF diagram) {
    std::array<std::vector<int>, kLayers> layers = {};
    for (std::size_t p = 0; p < shape_.parts.size(); ++p)
      if (layer_of(shape_.parts[p].kind) != kHost || host_is_used())
        layers[layer_of(shape_.parts[p].kind)].push_back(static_cast<int>(p));
    const bool across = network_.nodes() > 1 && !layers[kNic].empty();
    for (int rail = 0; across && rail < network_.rails(); ++rail) layers[kLeaf].push_back(fabric_part(PartKind::Leaf, rail));
    if (across && network_.leaf_groups() > 1) layers[kSpine].push_back(fabric_part(PartKind::Spine, 0));
    int used = 0, at = 0;
    for (const auto& layer : layers) used += layer.empty() ? 0 : 1;
    const double pitch = diagram.height() / std::max(used, 1), tall = std::min(pitch * 0.46, 34.0);
    for (const auto& layer : layers) {
      if (layer.empty()) continue;
      const double slot = diagram.width() / static_cast<double>(layer.size());
      const bool wide = layer.size() == 1;
      for (std::size_t i = 0; i < layer.size(); ++i) {
        const double width = wide ? diagram.width() * 0.8 : std::min(slot * 0.78, 150.0);
        const QPointF centre(diagram.left() + slot * (static_cast<double>(i) + 0.5), diagram.top() + pitch * (at + 0.5));
        box(layer[i], QRectF(centre.x() - width / 2, centre.y() - tall / 2, width, tall));
      }
      ++at;
    }
  }

  // Host memory and drives are left out when nothing goes there.
  bool host_is_used() const {
    const auto is_host = [&](int part) { return layer_of(shape_.parts[static_cast<std::size_t>(part)].kind) == kHost; };
    const int first = network_.first_link(node_).value;
    for (std::size_t l = 0; l < shape_.links.size(); ++l)
      for (std::size_t down = 0; down < 2; ++down)
        if ((is_host(shape_.links[l].from) || is_host(shape_.links[l].to)) &&
            of_link_[static_cast<std::size_t>(first) + 2 * l + down] >= 0)
          return true;
    return false;
  }

  // Parts of the fabric get numbers after those of the node.
  int fabric_part(PartKind kind, int number) {
    const int part = static_cast<int>(shape_.parts.size()) + static_cast<int>(fabric_.size());
    fabric_.push_back({kind, number});
    return part;
  }

  PartKind kind(int part) const {
    const auto at = static_cast<std::size_t>(part);
    return at < shape_.parts.size() ? shape_.parts[at].kind : fabric_[at - shape_.parts.size()].kind;
  }

  void box(int part, QRectF where) {
    const auto at = static_cast<std::size_t>(part);
    QString label, note;
    if (at < shape_.parts.size()) {
      label = QString::fromStdString(shape_.parts[at].name);
      if (shape_.parts[at].kind == PartKind::Gpu) note = role_on(network_.first_device(node_).value + part);
    } else {
      const FabricPart& fabric = fabric_[at - shape_.parts.size()];
      label = fabric.kind == PartKind::Spine ? QCoreApplication::translate("Topology", "spine")
                                             : QCoreApplication::translate("Topology", "leaf");
      if (fabric.kind != PartKind::Spine) note = QCoreApplication::translate("Topology", "rail %1").arg(fabric.number);
    }
    where_[part] = where;
    picture_.parts.push_back({where, kind(part), label, note});
  }

  QString role_on(int device) {
    if (roles_.empty()) {
      const Ranks ranks(document_.plan());
      for (std::int32_t r = 0; r < ranks.count(); ++r) roles_.emplace(ranks.device({r}).value, ranks.role({r}).value);
    }
    const auto found = roles_.find(device);
    return found == roles_.end() ? QString() : role_words(document_.plan().roles[static_cast<std::size_t>(found->second)].name);
  }

  // The two directions of a link lie beside each other.
  void line(int from, int to, LinkId link) {
    if (!where_.contains(from) || !where_.contains(to)) return;
    const QRectF a = where_[from], b = where_[to];
    const double bandwidth = network_.link(link).bandwidth.value;
    const double width = 1.2 + 5.8 * std::sqrt(std::min(bandwidth / std::max(widest_, 1.0), 1.0));
    const auto end = [](QRectF box, QRectF other) {
      const double x = std::clamp(other.center().x(), box.left() + 8, box.right() - 8);
      if (std::abs(other.center().y() - box.center().y()) < 1)
        return QPointF(other.center().x() > box.center().x() ? box.right() : box.left(), box.center().y());
      return QPointF(box.width() > other.width() ? x : box.center().x(),
                     other.center().y() > box.center().y() ? box.bottom() : box.top());
    };
    QPointF p = end(a, b), q = end(b, a);
    const double length = std::hypot(q.x() - p.x(), q.y() - p.y());
    if (length < 1) return;
    const QPointF beside = QPointF(-(q.y() - p.y()), q.x() - p.x()) / length * (width / 2 + 0.8);
    const std::int32_t c = link.valid() && link.index() < of_link_.size() ? of_link_[link.index()] : -1;
    picture_.lines.push_back({p + beside, q + beside, link, c, width});
  }

  void fabric(int first_port) {
    if (fabric_.empty()) return;
    const int parts = static_cast<int>(shape_.parts.size()), group = network_.leaf_group(node_);
    int nic = 0;
    for (int p = 0; p < parts; ++p) {
      if (shape_.parts[static_cast<std::size_t>(p)].kind != PartKind::Nic) continue;
      const int rail = std::clamp(shape_.parts[static_cast<std::size_t>(p)].rail, 0, network_.rails() - 1);
      for (int down = 0; down < 2; ++down)
        line(down ? parts + rail : p, down ? p : parts + rail, {first_port + 2 * nic + down});
      ++nic;
    }
    if (fabric_.back().kind != PartKind::Spine) return;
    const int spine = parts + static_cast<int>(fabric_.size()) - 1;
    for (int rail = 0; rail < network_.rails(); ++rail)
      for (int down = 0; down < 2; ++down)
        line(down ? spine : parts + rail, down ? parts + rail : spine, network_.leaf_trunk(group, rail, down != 0));
  }

  void cells(QRectF strip) {
    if (strip.isEmpty()) return;
    const int count = network_.nodes();
    int rows = 1;
    while (rows * static_cast<int>(strip.width() / std::max(strip.height() / rows, 4.0)) < count && strip.height() / rows > 5)
      ++rows;
    const int columns = (count + rows - 1) / rows;
    const double wide = std::min(strip.width() / columns, 48.0), tall = strip.height() / rows;
    for (int n = 0; n < count; ++n)
      picture_.nodes.push_back(
          {QRectF(strip.left() + wide * (n % columns),
                  strip.top() + tall * static_cast<double>(n / columns),  // NOLINT(bugprone-integer-division)
                  wide - 1.5, tall - 1.5),
           n});
  }

  struct FabricPart {
    PartKind kind = PartKind::Leaf;
    int number = 0;
  };
  const Document& document_;
  const Network& network_;
  const std::vector<std::int32_t>& of_link_;
  int node_;
  const NodeShape& shape_;
  double widest_ = 1;
  std::vector<FabricPart> fabric_ = {};
  std::map<int, QRectF> where_ = {};
  std::map<int, std::int32_t> roles_ = {};
  TopologyPicture picture_ = {};
};

}  // namespace

TopologyPicture lay_topology(const Document& document, const Network& network, const std::vector<std::int32_t>& of_link,
                             int node, QRectF diagram, QRectF strip) {
  return TopologyDrawing(document, network, of_link, std::clamp(node, 0, network.nodes() - 1)).draw(diagram, strip);
}

}  // namespace foreshard
