// Precompiled header of the window: what many of its files include, compiled once per build (-DFORESHARD_PCH=ON). Each file still includes
// what it uses.
#pragma once

#include <QComboBox>
#include <QCoreApplication>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QPushButton>
#include <QRegularExpression>
#include <QString>
#include <QTableView>
#include <QTimer>
#include <QVBoxLayout>
#include <QWidget>
#include <QtConcurrent>
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/json/json.h"
#include "core/result/result.h"
#include "core/strategy/strategy_options.h"
