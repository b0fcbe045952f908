// Reads and writes a Compression as text, in the form of options and files.
//   of gradients     none, dgc:0.01 (share of the elements that is kept), one-bit, one-bit:100 (after 100 updates without), eight-bit,
//                    segmented:8 (bits; a centre and two tails), segmented:4x8 (bits x segments with equal numbers of levels)
//   of activations   none, token-topk:0.5 (share of the tokens that is kept), segmented:8, segmented:4x8, or both:
//                    token-topk:0.5,segmented:8 (codes of the rows that are kept)
//   of dispatch      none, fp8, eight-bit
#pragma once

#include <string>

#include "core/strategy/strategy.h"

namespace foreshard {

enum class Compressed : std::uint8_t { Gradients, Activations, Dispatch };  // what is compressed

std::string to_text(const Compression& compression);
Compression parse_compression(const std::string& text, Compressed what, const std::string& path,
                              const std::string& where);  // throws Error

}  // namespace foreshard
