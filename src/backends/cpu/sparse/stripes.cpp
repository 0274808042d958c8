#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/convolution.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/simd/loops.h"
#include "backends/cpu/sparse/conv2d.h"
#include "backends/cpu/sparse/expansion.h"
#include "base/error.h"

// The weight gradient by expansion, a stripe of an image at a time. With 16-bit images oneDNN transposes whole images in its
// scratch, once per thread and with a copy of the gradient for the threads' sums; stripes of some rows, each by one thread, need
// a fraction of that and take as long.

namespace snug::backends::cpu {

namespace {

constexpr std::int64_t kStripeRows = 8;

// Rows of the output, and the rows of the input that they read.
struct Stripe {
  std::int64_t out_begin, out_rows, in_begin, in_rows, padding;
};

Stripe stripe_at(const Conv2dGeometry& g, std::int64_t out_begin) {
  const std::int64_t rows = std::min(kStripeRows, g.out_height - out_begin);
  const std::int64_t first = out_begin * g.stride_height - g.padding_height;
  const std::int64_t end = first + (rows - 1) * g.stride_height + (g.kernel_height - 1) * g.dilation_height + 1;
  const std::int64_t begin = std::max<std::int64_t>(0, first);
  return {.out_begin = out_begin,
          .out_rows = rows,
          .in_begin = begin,
          .in_rows = std::min(end, g.in_height) - begin,
          .padding = begin - first};
}

Type with_rows(const Type& type, std::int64_t rows) {
  return {.dtype = type.dtype, .shape = {1, type.shape[1], rows, type.shape[3]}, .layout = Layout::channels_last()};
}

// A call's stripes, and the primitives for them; stripes of one kind share one.
struct Stripes {
  using Description = dnnl::convolution_backward_weights::primitive_desc;
  Conv2dGeometry geometry;
  std::vector<Stripe> stripes;
  std::vector<std::size_t> kind;  // by stripe
  std::vector<Description> descriptions;
  Bytes scratchpad;

  Stripes(const Type& dy, const Type& x, const Attributes& attributes)
      : geometry(Conv2dGeometry::from(x.shape, ops::SparseSlot::from(attributes).shape, attributes)) {
    const OmpThreads one(1);
    std::vector<Stripe> seen;
    for (std::int64_t row = 0; row < geometry.out_height; row += kStripeRows) {
      const Stripe stripe = stripe_at(geometry, row);
      stripes.push_back(stripe);
      const auto same = std::find_if(seen.begin(), seen.end(), [&](const Stripe& other) {
        return other.out_rows == stripe.out_rows && other.in_rows == stripe.in_rows && other.padding == stripe.padding;
      });
      kind.push_back(static_cast<std::size_t>(same - seen.begin()));
      if (same != seen.end()) continue;
      seen.push_back(stripe);
      descriptions.push_back(describe(dy, x, attributes, stripe));
      scratchpad = std::max(scratchpad, size_of(descriptions.back().scratchpad_desc()));
    }
  }

  dnnl::memory::desc gradient() const { return descriptions.front().diff_weights_desc(); }
  bool agree() const {
    return std::ranges::all_of(descriptions, [&](const Description& other) { return other.diff_weights_desc() == gradient(); });
  }

 private:
  static Description describe(const Type& dy, const Type& x, const Attributes& attributes, const Stripe& stripe) {
    const Type weight{.dtype = x.dtype, .shape = ops::SparseSlot::from(attributes).shape, .layout = Layout::channels_last()};
    // For the whole image, then reduced: a stripe's padding differs on its two sides.
    Convolution conv(x, weight, dy, attributes);
    conv.input = descriptor(with_rows(x, stripe.in_rows));
    conv.output = descriptor(with_rows(dy, stripe.out_rows));
    conv.geometry.in_height = stripe.in_rows;
    conv.geometry.out_height = stripe.out_rows;
    conv.geometry.padding_height = stripe.padding;
    conv.padding[0] = stripe.padding;
    return conv.backward_weights(conv.wanted_gradient());
  }
};

// A thread's pieces of the workspace lie one after the other.
struct StripePieces {
  std::byte* begin;
  Bytes total, fresh, each;
  std::byte* tables;

  StripePieces(WorkspaceCutter& cutter, const Stripes& stripes, const SparsePart& part, int threads)
      : total(round_up(size_of(stripes.gradient()), kAlignment)),
        fresh(total),
        each(total + fresh + round_up(stripes.scratchpad, kAlignment)) {
    begin = cutter.cut(Bytes(each.count() * threads));
    tables = cutter.cut(position_tables_size(part));
  }
  std::byte* total_of(int thread) const { return begin + thread * each.count(); }
  std::byte* fresh_of(int thread) const { return total_of(thread) + total.count(); }
  std::byte* scratchpad_of(int thread) const { return fresh_of(thread) + fresh.count(); }
};

KernelMatch match(const KernelQuery& query) {
  if (query.inputs[0].dtype != DType::bf16) return Refuse{to_string(query.inputs[0]) + " is not bf16; only there it saves bytes"};
  for (const Type* type : {&query.inputs[0], &query.inputs[1]}) {
    if (type->layout.kind != Layout::Kind::channels_last) return Refuse{to_string(*type) + " does not lie channels last"};
  }
  const std::int64_t rows = query.inputs[0].shape[2];
  if (rows <= kStripeRows) return Refuse{fmt::format("{} rows are one stripe", rows)};
  try {
    const Stripes stripes(query.inputs[0], query.inputs[1], query.attributes);
    if (!stripes.agree()) return Refuse{"oneDNN wants several layouts for the gradient"};
    WorkspaceCutter cutter;
    const StripePieces pieces(cutter, stripes, whole_part(ops::SparseSlot::from(query.attributes), Operand{}, Operand{}),
                              query.threads);
    const KernelMatch whole = onednn_sparse_conv2d_grad_weight.match(query);
    const auto* accepted = std::get_if<Accept>(&whole);
    if (accepted != nullptr && cutter.used().count() * 4 > accepted->workspace.count() * 3)
      return Refuse{
          fmt::format("{} bytes of workspace save little beside {}", cutter.used().count(), accepted->workspace.count())};
    return Accept{.workspace = cutter.used(),
                  .numerics = "onednn_stripes",
                  .slowdown = 1.1,
                  .is_reference = std::ranges::any_of(stripes.descriptions, is_reference)};
  } catch (const dnnl::error& error) {
    return Refuse{fmt::format("oneDNN: {}", error.message)};
  }
}

// Image after image and stripe after stripe, divided evenly among the threads.
class StripedGradient final : public BoundKernel {
 public:
  StripedGradient(const KernelArguments& arguments, const Stripes& stripes, const StripePieces& pieces)
      : geometry_(stripes.geometry),
        stripes_(stripes.stripes),
        kind_(stripes.kind),
        pieces_(pieces),
        dy_(arguments.inputs[0].data),
        x_(arguments.inputs[1].data),
        element_(bits_per_element(arguments.inputs[0].type.dtype) / 8),
        floats_(size_of(stripes.gradient()).count() / static_cast<std::int64_t>(sizeof(float))),
        threads_(arguments.threads) {
    for (const auto& description : stripes.descriptions) primitives_.emplace_back(description);
    for (int thread = 0; thread < threads_; ++thread) {
      for (const auto& description : stripes.descriptions) {
        arguments_.push_back({.dy = memory_at(description.diff_dst_desc(), arguments.inputs[0].data),
                              .x = memory_at(description.src_desc(), arguments.inputs[1].data),
                              .gradient = memory_at(description.diff_weights_desc(), pieces.total_of(thread)),
                              .scratchpad = memory_at(description.scratchpad_desc(), pieces.scratchpad_of(thread))});
      }
    }
  }

  void run() override {
    const auto stripes = static_cast<std::int64_t>(stripes_.size());
    for_each_part(geometry_.batch * stripes, threads_, 1, [&](int thread, Range part) {
      if (part.size() == 0) std::memset(pieces_.total_of(thread), 0, static_cast<std::size_t>(pieces_.total.count()));
      for (std::int64_t item = part.begin; item < part.end; ++item) {
        const bool first = item == part.begin;
        run_stripe(thread, item / stripes, static_cast<std::size_t>(item % stripes), first);
        if (!first) add(thread, pieces_.fresh_of(thread), {0, floats_});
      }
    });
    for (int other = 1; other < threads_; ++other) {
      for_each_part(floats_, threads_, 16, [&](int, Range part) { add(0, pieces_.total_of(other), part); });
    }
  }

 private:
  struct Arguments {
    dnnl::memory dy, x, gradient, scratchpad;
  };

  void add(int thread, const std::byte* summand, Range part) const {
    auto* total = reinterpret_cast<float*>(pieces_.total_of(thread)) + part.begin;
    simd::element_loops<float>().add(total, reinterpret_cast<const float*>(summand) + part.begin, total, part.size());
  }

  void run_stripe(int thread, std::int64_t image, std::size_t index, bool first) {
    const Stripe& stripe = stripes_[index];
    const Conv2dGeometry& g = geometry_;
    Arguments& with = arguments_[static_cast<std::size_t>(thread) * primitives_.size() + kind_[index]];
    with.dy.set_data_handle(dy_ + (image * g.out_height + stripe.out_begin) * g.out_width * g.out_channels * element_);
    with.x.set_data_handle(x_ + (image * g.in_height + stripe.in_begin) * g.in_width * g.in_channels * element_);
    with.gradient.set_data_handle(first ? pieces_.total_of(thread) : pieces_.fresh_of(thread));
    const std::array<dnnl_exec_arg_t, 4> list{{{DNNL_ARG_DIFF_DST, with.dy.get()},
                                               {DNNL_ARG_SRC, with.x.get()},
                                               {DNNL_ARG_DIFF_WEIGHTS, with.gradient.get()},
                                               {DNNL_ARG_SCRATCHPAD, with.scratchpad.get()}}};
    const dnnl_status_t status =
        dnnl_primitive_execute(primitives_[kind_[index]].get(), stream().get(), static_cast<int>(list.size()), list.data());
    SNUG_CHECK(status == dnnl_success, "dnnl_primitive_execute failed with status {}", static_cast<int>(status));
  }

  Conv2dGeometry geometry_;
  std::vector<Stripe> stripes_;
  std::vector<std::size_t> kind_;
  StripePieces pieces_;
  std::byte *dy_, *x_;
  std::int64_t element_, floats_;
  int threads_;
  std::vector<dnnl::convolution_backward_weights> primitives_;
  std::vector<Arguments> arguments_;  // by thread and kind of stripe
};

std::unique_ptr<BoundKernel> bind(const KernelArguments& arguments) {
  const Stripes stripes(arguments.inputs[0].type, arguments.inputs[1].type, arguments.attributes);
  const SparsePart part = whole_part(ops::SparseSlot::from(arguments.attributes), arguments.inputs[2], arguments.inputs[3]);
  WorkspaceCutter cutter(arguments.workspace.data());
  const StripePieces pieces(cutter, stripes, part, arguments.threads);
  auto chain = std::make_unique<PrimitiveChain>();
  chain->add_action(begin_gradient(arguments));
  chain->add_action(std::make_unique<StripedGradient>(arguments, stripes, pieces));
  chain->add_action(gather_gradient(part, stripes.gradient(), pieces.total_of(0), arguments.outputs[0].type.dtype,
                                    arguments.outputs[0].data, pieces.tables, arguments.threads));
  return chain;
}

}  // namespace

constinit const KernelDef onednn_sparse_conv2d_grad_weight_stripes{
    .name = "onednn_sparse_conv2d_grad_weight_stripes", .op = "sparse_conv2d_grad_weight", .match = match, .bind = bind};

}  // namespace snug::backends::cpu
