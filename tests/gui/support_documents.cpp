#include <QCryptographicHash>

#include "tests/gui/documents.h"

namespace foreshard {

std::shared_ptr<const Document> pipeline_document(played::Fold fold, const played::Slow& slow) {
  const played::Pipeline pipeline{
      .p = 4, .m = 8, .replicas = 2, .forward = {2}, .backward = {4}, .latency = 1, .reduce = 3, .update = 1, .unit = 500'000};
  return make_document(played::result_of(pipeline, fold, slow), "made", played::cluster_of(8));
}

std::string hash_of(const QImage& image) {
  QCryptographicHash hash(QCryptographicHash::Sha1);
  for (int y = 0; y < image.height(); ++y)
    hash.addData(QByteArrayView(reinterpret_cast<const char*>(image.constScanLine(y)), image.width() * 4));
  return hash.result().toHex().left(16).toStdString();
}

}  // namespace foreshard
