// How far an entry of a stream has come that meets others.
#pragma once

namespace foreshard {

enum class Meeting {
  Held,  // the GPU has not begun it
  Runs,  // it waits on the GPU for its partners
  Over,
};

}  // namespace foreshard
