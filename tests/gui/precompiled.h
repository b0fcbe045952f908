// What many tests of the window include, compiled once per build (-DFORESHARD_PCH=ON). Each test includes what it uses all the same.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QSignalSpy>
#include <QTest>

#include "core/cluster_file/cluster_file.h"
#include "gui/precompiled.h"
