#include "backends/cpu/sequence/products.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace snug::backends::cpu {

namespace {

using Dims = dnnl::memory::dims;

dnnl::matmul::primitive_desc describe(const ThreadProduct& p) {
  const auto type = data_type_of(p.dtype);
  const dnnl::memory::desc a(Dims{p.rows, p.depth}, type, Dims{p.a_down, p.a_across});
  const dnnl::memory::desc b(Dims{p.depth, p.columns}, type, Dims{p.b_down, p.b_across});
  const dnnl::memory::desc c(Dims{p.rows, p.columns}, dnnl::memory::data_type::f32, Dims{p.c_down, 1});
  dnnl::primitive_attr attributes = booked_scratchpad();
  if (p.adds) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  return {{a, b, c}, attributes, engine()};
}

}  // namespace

void ThreadProducts::plan(const ThreadProduct& product) {
  if (std::ranges::find(made_, product, &Made::product) != made_.end()) return;
  const OmpThreads alone(1);
  Made made{.product = product, .description = describe(product), .primitive = {}, .of_thread = {}};
  scratchpad_ = std::max(scratchpad_, round_up(size_of(made.description.scratchpad_desc()), kAlignment));
  is_reference_ = is_reference_ || cpu::is_reference(made.description);
  made_.push_back(std::move(made));
}

void ThreadProducts::bind(int threads, std::byte* scratchpads) {
  const OmpThreads alone(1);
  status_.assign(static_cast<std::size_t>(threads), dnnl_success);
  for (Made& made : made_) {
    made.primitive = dnnl::matmul(made.description);
    for (int thread = 0; thread < threads; ++thread) {
      made.of_thread.push_back(
          {.a = memory_at(made.description.src_desc(), nullptr),
           .b = memory_at(made.description.weights_desc(), nullptr),
           .c = memory_at(made.description.dst_desc(), nullptr),
           .scratchpad = memory_at(made.description.scratchpad_desc(), scratchpads + thread * scratchpad_.count())});
    }
  }
}

void ThreadProducts::run(const ThreadProduct& product, int thread, const void* a, const void* b, float* c) const {
  const auto number = static_cast<std::size_t>(thread);
  const auto made = std::ranges::find(made_, product, &Made::product);
  if (made == made_.end()) {
    status_[number] = dnnl_invalid_arguments;
    return;
  }
  const OfThread& own = made->of_thread[number];
  const std::array<std::pair<const dnnl::memory*, const void*>, 3> operands{{{&own.a, a}, {&own.b, b}, {&own.c, c}}};
  for (const auto& [memory, data] : operands) {
    if (const auto status = dnnl_memory_set_data_handle(memory->get(), const_cast<void*>(data)); status != dnnl_success)
      status_[number] = status;
  }
  const std::array<dnnl_exec_arg_t, 4> arguments{{{DNNL_ARG_SRC, own.a.get()},
                                                  {DNNL_ARG_WEIGHTS, own.b.get()},
                                                  {DNNL_ARG_DST, own.c.get()},
                                                  {DNNL_ARG_SCRATCHPAD, own.scratchpad.get()}}};
  const OmpThreads alone(1);
  const auto status =
      dnnl_primitive_execute(made->primitive.get(), stream().get(), static_cast<int>(arguments.size()), arguments.data());
  if (status != dnnl_success) status_[number] = status;
}

void ThreadProducts::check() const {
  for (const dnnl_status_t status : status_)
    SNUG_CHECK(status == dnnl_success, "a product of one thread failed with status {}", static_cast<int>(status));
}

}  // namespace snug::backends::cpu
