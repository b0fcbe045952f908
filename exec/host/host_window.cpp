#include "exec/host/host_window.h"

namespace foreshard::host {

Convolution convolution_of(const Form& form) {
  const std::vector<std::int64_t>& in = form.dims(0, 4);
  if (form.what.shapes.size() != 3 || form.what.shapes[1].dims.size() != 4)
    form.refuse("other shapes", "{n, ci, h, w}, {co, kernel, stride, padding}, {n, co, h', w'}");
  const std::vector<std::int64_t>&filter = form.what.shapes[1].dims, &out = form.dims(2, 4);  // the padding may be 0
  const Convolution conv{.window = {.samples = in[0],
                                    .channels = in[1],
                                    .height = in[2],
                                    .width = in[3],
                                    .out_height = out[2],
                                    .out_width = out[3],
                                    .kernel = filter[1],
                                    .stride = filter[2],
                                    .padding = filter[3]},
                         .filters = filter[0]};
  if (!conv.window.fits() || out[0] != in[0] || out[1] != filter[0]) form.refuse("shapes that do not fit", "a convolution");
  return conv;
}

// Maximum and average alike.
static ops::MaxPool pool_of(const Form& form) {
  if (const auto* average = std::get_if<ops::AvgPool>(&form.what.op))
    return {.kernel = average->kernel, .stride = average->stride, .padding = average->padding};
  return form.as<ops::MaxPool>();
}

Window pool_window_of(const Form& form) {
  const ops::MaxPool pool = pool_of(form);
  const std::vector<std::int64_t>&in = form.dims(0, 4), &out = form.dims(1, 4);
  const Window w{.samples = in[0],
                 .channels = in[1],
                 .height = in[2],
                 .width = in[3],
                 .out_height = out[2],
                 .out_width = out[3],
                 .kernel = pool.kernel,
                 .stride = pool.stride,
                 .padding = pool.padding};
  if (!w.fits() || w.padding >= w.kernel || out[0] != in[0] || out[1] != in[1])
    form.refuse("shapes that do not fit", "a pool of \"" + settings_text(form.what.op) + "\"");
  return w;
}

}  // namespace foreshard::host
