#include <QCryptographicHash>

#include "core/cluster_file/cluster_file.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"
#include "tests/core/support_models.h"
#include "tests/gui/documents.h"

namespace foreshard {

std::shared_ptr<const Document> pipeline_document(played::Fold fold, const played::Slow& slow) {
  const played::Pipeline pipeline{
      .p = 4, .m = 8, .replicas = 2, .forward = {2}, .backward = {4}, .latency = 1, .reduce = 3, .update = 1, .unit = 500'000};
  return make_document(played::result_of(pipeline, fold, slow), "made", played::cluster_of(8));
}

static std::shared_ptr<const Document> simulated(const SimulateOptions& options) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  const Strategy strategy{.dp = 4, .tp = 2, .pp = 2, .batch = {.global = 16, .seq = 256}};
  auto lowered = tuned_plan(load_model("gpt2-124m"), cluster, strategy);
  return make_document(simulate(std::get<Lowered>(std::move(lowered)).plan, cluster, options), "simulated");
}

std::shared_ptr<const Document> simulated_document() { return simulated({}); }

std::shared_ptr<const Document> single_operations_document() { return simulated({.granularity = Granularity::Op}); }

std::shared_ptr<const Document> mixture_document() {
  const Cluster cluster = load_cluster("dgx-h100");
  Model mixture = gpt(2, 512, 8, 1024, 512);
  Transformer& small = std::get<Transformer>(mixture.shape);
  small.ffn_hidden = 512;
  small.mlp_bias = false;
  small.block.experts = {.count = 8, .chosen = 2, .width = 1024};
  const Strategy strategy{.dp = 8,
                          .experts = {.ep = 4, .load = {.kind = ExpertLoad::Kind::Factor, .value = 2}},
                          .batch = {.micro = 1, .global = 16, .seq = 512},
                          .zero = {.stage = 3}};
  auto lowered = tuned_plan(mixture, cluster, strategy);
  return make_document(simulate(std::get<Lowered>(std::move(lowered)).plan, cluster, {.granularity = Granularity::Op}),
                       "mixture");
}

std::string hash_of(const QImage& image) {
  QCryptographicHash hash(QCryptographicHash::Sha1);
  for (int y = 0; y < image.height(); ++y)
    hash.addData(QByteArrayView(reinterpret_cast<const char*>(image.constScanLine(y)), image.width() * 4));
  return hash.result().toHex().left(16).toStdString();
}

}  // namespace foreshard
