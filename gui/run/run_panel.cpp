#include "gui/run/run_panel.h"

#include <QComboBox>
#include <QFormLayout>
#include <QFutureWatcher>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>
#include <QtConcurrent>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/plan/ranks.h"
#include "gui/document/background.h"
#include "gui/document/search_rows.h"
#include "gui/document/words.h"
#include "gui/run/loss_curve.h"
#include "report/words/devices.h"

namespace foreshard {

static constexpr int kMostRanks = 64;                           // threads on one machine
static constexpr Bytes kMostMemory = {std::int64_t{16} << 30};  // of all ranks together

QString why_not_run(const Plan& plan) {
  const Ranks ranks(plan);
  if (ranks.count() > kMostRanks)
    return RunPanel::tr("This plan needs %1 ranks; this machine runs at most %2.")
        .arg(count_words(ranks.count()), count_words(kMostRanks));
  Bytes total = {};
  for (int rank = 0; rank < ranks.count(); ++rank)
    total.value += arena_bytes(plan.roles[static_cast<std::size_t>(ranks.role({rank}).value)], Space::Device).value;
  if (total.value > kMostMemory.value)
    return RunPanel::tr("The ranks of this plan need %1 of memory together; this machine gives at most %2.")
        .arg(memory_text(total), memory_text(kMostMemory));
  return {};
}

RunPanel::RunPanel(const QString& program, QWidget* parent) : QWidget(parent), child_(program) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->setSpacing(8);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  device_ = new QComboBox;
  device_->addItem(tr("this machine's processor"), "host");
  device_->addItem(tr("CUDA GPUs"), "cuda");
  device_->setAccessibleName(tr("Device"));
  steps_ = new QSpinBox;
  steps_->setRange(1, 10'000);
  steps_->setValue(5);
  steps_->setAccessibleName(tr("Steps"));
  clock_mode_ = new QComboBox;
  clock_mode_->addItem(tr("emulated: per-op CPU time, scheduled along the plan"), "emulated");
  clock_mode_->addItem(tr("wall clock"), "wall");
  clock_mode_->setAccessibleName(tr("Time"));
  for (QComboBox* box : {device_, clock_mode_}) {  // a long entry does not make the dock wide
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(12);
  }
  form->addRow(tr("Device"), device_);
  form->addRow(tr("Steps"), steps_);
  form->addRow(tr("Time"), clock_mode_);
  column->addLayout(form);
  go_ = new QPushButton(tr("Run this plan"));
  connect(go_, &QPushButton::clicked, this, [this] { busy() ? stop() : start(); });
  column->addWidget(go_);
  bar_ = new QProgressBar;
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setFixedHeight(6);
  bar_->setAccessibleName(tr("Progress of the run"));
  column->addWidget(bar_);
  state_ = new QLabel;
  state_->setWordWrap(true);
  column->addWidget(state_);
  example_ = new QPushButton(tr("Load a small plan that runs here"));
  connect(example_, &QPushButton::clicked, this, &RunPanel::example_asked);
  column->addWidget(example_);
  curve_ = new LossCurve;
  column->addWidget(curve_, 1);
  result_ = new QLabel;
  result_->setWordWrap(true);
  result_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  column->addWidget(result_);
  column->addStretch(1);
  connect(&child_, &Child::progress, this, [this](double fraction) { bar_->setValue(static_cast<int>(fraction * 1000)); });
  connect(&child_, &Child::told, this, &RunPanel::take_line);
  connect(&child_, &Child::finished, this, &RunPanel::take_end);
  show_reason();
}

void RunPanel::set_theme(const Theme& theme) { curve_->set_theme(theme); }

void RunPanel::set_document(std::shared_ptr<const Document> document) {
  document_ = std::move(document);
  if (!busy()) show_reason();
}

void RunPanel::set_current(bool current) {
  current_ = current;
  if (!busy()) show_reason();
}

void RunPanel::show_reason() {
  const QString reason = document_ ? why_not_run(document_->plan()) : tr("No plan is shown.");
  state_->setText(reason);
  state_->setVisible(!reason.isEmpty());
  example_->setVisible(!reason.isEmpty());
  go_->setEnabled(reason.isEmpty() && current_);
}

void RunPanel::start() {
  if (!document_ || !current_ || busy()) return;
  const QString plan = folder_.filePath("run.plan.json");
  try {
    save_plan(document_->plan(), plan.toStdString());
  } catch (const Error& error) {
    state_->setText(QString::fromStdString(error.what()));
    state_->show();
    return;
  }
  ++runs_;
  curve_->clear();
  result_->clear();
  bar_->setValue(0);
  go_->setText(tr("Stop"));
  state_->setText(tr("Running …"));
  state_->show();
  child_.start({"run", plan, "--device", device_->currentData().toString(), "--steps", QString::number(steps_->value()),
                "--time", clock_mode_->currentData().toString(), "--save-result",
                folder_.filePath(QString("%1.result").arg(runs_)), "--json", "--progress", "json"},
               std::chrono::minutes(10));
}

void RunPanel::stop() {
  if (busy()) child_.cancel();
}

void RunPanel::take_line(const QByteArray& text) {
  try {
    const JsonReader json = JsonReader::parse(text.toStdString(), "run");
    if (!json.has("loss") || !json.at("loss").is_number()) return;
    curve_->add(json.at("loss").as_double());
    state_->setText(tr("step %1, loss %2, %3")
                        .arg(json.at("step").as_int() + 1)
                        .arg(json.at("loss").as_double(), 0, 'g', 5)
                        .arg(time_text(json.at("time_s").as_double())));
  } catch (const Error& error) {
    Q_EMIT said(QString::fromStdString(error.what()));
  }
}

void RunPanel::take_end(const ChildOutcome& outcome) {
  go_->setText(tr("Run this plan"));
  go_->setEnabled(current_);
  bar_->setValue(outcome.end == ChildEnd::Done ? 1000 : 0);
  if (outcome.end != ChildEnd::Done || outcome.exit_code != 0) {
    QString message = outcome.message;
    try {
      if (outcome.end == ChildEnd::Done)
        message =
            QString::fromStdString(JsonReader::parse(outcome.out.toStdString(), "run").at("infeasible_reason").as_string());
    } catch (const Error& error) {
      message = QString::fromStdString(error.what());
    }
    state_->setText(message);
    Q_EMIT said(message);
    return;
  }
  try {
    const JsonReader json = JsonReader::parse(outcome.out.toStdString(), "run");
    const double seconds = json.at("iteration_time_s").as_double();
    QString text =
        tr("measured %1 per step, peak %2").arg(time_text(seconds), memory_text({json.at("peak_memory_bytes").as_int()}));
    if (document_) {
      const double predicted = document_->summary.iteration_time.value;
      text += "\n" + tr("predicted %1 for %2").arg(time_text(predicted), QString::fromStdString(document_->cluster_name));
    }
    result_->setText(text);
    state_->hide();
  } catch (const Error& error) {
    Q_EMIT said(QString::fromStdString(error.what()));
  }
  load(folder_.filePath(QString("%1.result").arg(runs_)));
}

void RunPanel::load(const QString& file) {
  auto* watcher = new QFutureWatcher<LoadedDocument>(this);
  connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher] {
    watcher->deleteLater();
    const LoadedDocument loaded = watcher->result();
    if (const auto* problem = std::get_if<std::string>(&loaded))
      Q_EMIT said(QString::fromStdString(*problem));
    else
      take_measured(std::get<std::shared_ptr<const Document>>(loaded));
  });
  watcher->setFuture(QtConcurrent::run([file] { return loaded_by([&] { return load_document(file.toStdString()); }); }));
}

void RunPanel::take_measured(const std::shared_ptr<const Document>& measurement) {
  if (document_ && !same_device(document_->result, measurement->result))
    result_->setText(result_->text() + "\n" +
                     tr("The two are not comparable: %1 is not %2. To predict this machine, run \"foreshard calibrate --device "
                        "host\" and choose its this-host.json as the cluster.")
                         .arg(device_text(*measurement), device_text(*document_)));
  Q_EMIT measured(measurement);
}

}  // namespace foreshard
