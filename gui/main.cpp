// foreshard-gui: the window.
#include <QApplication>
#include <QMainWindow>

int main(int count, char** arguments) {
  const QApplication application(count, arguments);
  QMainWindow window;
  window.setWindowTitle("foreshard");
  window.resize(1280, 800);
  window.show();
  return QApplication::exec();
}
