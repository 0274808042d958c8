// Sparse convolutions against dense ones: the three products of every convolution of WRN-28-2, by each family of kernels, at
// several densities. Times are the least of several runs, taken in turn, so that a busy moment of the machine hits all alike.
//
//   sparse_bench                                    batch 10, all densities
//   sparse_bench --batch 2 --densities 0.1,0.3 --threads 1 --precision bf16
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cpu/cpu.h"
#include "backends/sparse_store.h"
#include "base/error.h"
#include "base/threads.h"
#include "ir/builder.h"
#include "ops/conv2d.h"
#include "ops/ops.h"
#include "ops/sparse.h"
#include "passes/select_kernels.h"
#include "plan/compile.h"
#include "runtime/executor.h"

namespace snug::bench {

namespace {

using Integers = std::vector<std::int64_t>;

struct Options {
  std::int64_t batch = 10;
  int threads = 0;
  int rounds = 15;
  std::string precision = "fp32";
  std::vector<double> densities = {0.01, 0.05, 0.1, 0.3, 0.5, 1.0};
};

struct Layer {
  std::int64_t in, out, size, stride;  // size: of the input
  int count;                           // in WRN-28-2
};

constexpr std::array<Layer, 6> kLayers{
    {{16, 32, 32, 1, 1}, {32, 32, 32, 1, 7}, {32, 64, 32, 2, 1}, {64, 64, 16, 1, 7}, {64, 128, 16, 2, 1}, {128, 128, 8, 1, 7}}};

constexpr std::array<std::string_view, 3> kProducts{"forward", "data gradient", "weight gradient"};

// One node as a program, ready to run.
class Timed {
 public:
  Timed(const Backend& backend, const OpDef& op, const Attributes& attributes, const std::vector<Type>& inputs, int in_place,
        DType dtype)
      : workspace_(0) {
    Program program{.name = "bench", .batch = 1, .microbatch = 1, .states = {}, .sections = {}};
    for (const Type& type : inputs)
      program.states.push_back({.name = fmt::format("in{}", program.states.size()), .type = type, .role = Role::input});
    StateId out(program.states.size());
    if (in_place >= 0) {
      out = StateId(static_cast<std::size_t>(in_place));
    } else {
      program.states.push_back({.name = "out", .type = infer_types(op, {inputs, attributes}).front(), .role = Role::input});
    }
    Section section{.kind = SectionKind::micro, .values = {}, .nodes = {}};
    SectionBuilder builder(program.states, section);
    std::vector<ValueId> reads;
    for (std::size_t i = 0; i < inputs.size(); ++i) reads.push_back(builder.read(StateId(i)));
    builder.emit(op, reads, attributes, {.layer = "bench", .writes = {out}});
    program.sections.push_back(std::move(section));
    plan_ = std::make_unique<Plan>(place(select_kernels(std::move(program), {.backend = backend})));
    const Node& node = plan_->program.sections.front().nodes.front();
    if (node.workspace.valid()) workspace_ = plan_->program.sections.front().value(node.workspace).type.bytes();
    executor_ = std::make_unique<Executor>(*plan_, backend);
    std::mt19937 random(1);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].dtype != dtype) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(inputs[i].bytes().count()));
      // Numbers of size one in every type: sign and fraction at random.
      const std::size_t width = static_cast<std::size_t>(bits_per_element(dtype)) / 8;
      for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
        bytes[at + width - 1] = static_cast<std::byte>(0x3E | (random() & 0x80));
        bytes[at + width - 2] = static_cast<std::byte>(random() & 0xFF);
      }
      executor_->write(StateId(i), bytes);
    }
  }

  void write(std::size_t state, std::span<const std::byte> bytes) { executor_->write(StateId(state), bytes); }
  Bytes workspace() const { return workspace_; }

  void run() {
    const auto start = std::chrono::steady_clock::now();
    executor_->run(SectionKind::micro);
    best_ = std::min(best_, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  double best() const { return best_; }

 private:
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Executor> executor_;
  Bytes workspace_;
  double best_ = 1e9;
};

struct Problem {
  Layer layer;
  Attributes attributes;
  Type x, y, weight;

  Problem(const Layer& shape, std::int64_t batch, DType dtype)
      : layer(shape),
        attributes{{"stride", Integers{shape.stride, shape.stride}},
                   {"padding", Integers{1, 1}},
                   {"dilation", Integers{1, 1}},
                   {"groups", std::int64_t{1}}} {
    const std::int64_t out = shape.size / shape.stride;
    x = {.dtype = dtype, .shape = {batch, shape.in, shape.size, shape.size}, .layout = Layout::channels_last()};
    y = {.dtype = dtype, .shape = {batch, shape.out, out, out}, .layout = Layout::channels_last()};
    weight = {.dtype = dtype, .shape = {shape.out, shape.in, 3, 3}, .layout = Layout::channels_last()};
  }
  Attributes with(std::string_view name, Attribute value) const {
    Attributes result = attributes;
    result.set(name, std::move(value));
    return result;
  }
  Integers input_shape() const { return {x.shape.dims().begin(), x.shape.dims().end()}; }
};

// The dense product as a dense model has it: the weight in the layout that the backend prefers.
Timed dense(const Backend& backend, const Problem& p, std::size_t product, DType dtype) {
  Type weight = p.weight;
  const std::vector<Type> inputs{p.x, p.weight};
  const std::vector<Type> outputs{p.y};
  if (const auto layout = backend.preferred_weight_layout({.op = ops::conv2d,
                                                           .attributes = p.attributes,
                                                           .inputs = inputs,
                                                           .outputs = outputs,
                                                           .threads = backend.threads,
                                                           .device = backend.device.get()})) {
    weight.layout = *layout;
  }
  if (product == 0) return {backend, ops::conv2d, p.attributes, {p.x, weight}, -1, dtype};
  if (product == 1) return {backend, ops::conv2d_grad_input, p.with("input_shape", p.input_shape()), {p.y, weight}, -1, dtype};
  Attributes adding = p.with("kernel", Integers{3, 3});
  adding.set(kAccumulate, std::int64_t{1});
  return {backend, ops::conv2d_grad_weight, adding, {p.y, p.x, weight}, 2, dtype};
}

Timed sparse(const Backend& backend, const Problem& p, std::size_t product, double density, DType dtype) {
  const ops::SparseGrid grid{.rows = {p.layer.out}, .columns = {p.layer.in * 9}, .bits = ops::sparse_index_bits(p.layer.in * 9)};
  const auto nonzeros = static_cast<std::int64_t>(density * static_cast<double>(grid.elements(0)));
  const Type values{.dtype = dtype, .shape = {nonzeros}};
  const Type columns = ops::sparse_columns_type(nonzeros, grid.bits);
  const Type rows = ops::sparse_rows_type(p.layer.out);
  Attributes attributes = p.attributes;
  ops::set_slot(attributes, {.first_row = 0, .shape = p.weight.shape, .bits = grid.bits});
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(columns.bytes().count()));
  std::vector<std::int32_t> offsets(static_cast<std::size_t>(rows.elements()));
  backends::draw_pattern(grid, Integers{nonzeros}, 1, packed, offsets.data());
  const auto filled = [&](Timed timed) {
    timed.write(2, std::as_bytes(std::span(packed)));
    timed.write(3, std::as_bytes(std::span(offsets)));
    return timed;
  };
  if (product == 0) return filled({backend, ops::sparse_conv2d, attributes, {p.x, values, columns, rows}, -1, dtype});
  if (product == 1) {
    attributes.set("input_shape", p.input_shape());
    return filled({backend, ops::sparse_conv2d_grad_input, attributes, {p.y, values, columns, rows}, -1, dtype});
  }
  attributes.set("nonzeros", nonzeros);
  attributes.set(kAccumulate, std::int64_t{1});
  return filled({backend, ops::sparse_conv2d_grad_weight, attributes, {p.y, p.x, columns, rows, values}, 4, dtype});
}

// The CPU's backend with one family of sparse kernels.
Backend family_of(std::string_view prefix, int threads) {
  Backend backend = backends::cpu_backend(threads);
  std::erase_if(backend.kernels, [&](const KernelDef* kernel) {
    return kernel->op.starts_with("sparse_conv2d") && !kernel->name.starts_with(prefix);
  });
  return backend;
}

void run(const Options& options) {
  const int threads = thread_count(options.threads);
  const DType dtype = options.precision == "bf16" ? DType::bf16 : DType::f32;
  const Backend plain = backends::cpu_backend(threads);
  const std::vector<std::pair<std::string, Backend>> families{{"expansion", family_of("onednn", threads)},
                                                              {"direct", family_of("direct", threads)}};
  fmt::print("WRN-28-2's convolutions, {} images, {}, {} thread{}; times beside dense, and the workspace\n\n", options.batch,
             options.precision, threads, threads == 1 ? "" : "s");
  fmt::print("{:28} {:>9}", "convolution", "dense ms");
  for (const auto& [name, backend] : families) {
    for (const double density : options.densities) fmt::print(" {:>9}", fmt::format("{:.3} {:g}%", name, 100 * density));
    fmt::print(" {:>9}", "bytes");
  }
  fmt::print("\n");
  double dense_all = 0;
  std::map<std::pair<std::size_t, double>, double> all;
  for (const Layer& layer : kLayers) {
    const Problem problem(layer, options.batch, dtype);
    for (std::size_t product = 0; product < kProducts.size(); ++product) {
      std::vector<Timed> timed;
      timed.push_back(dense(plain, problem, product, dtype));
      for (const auto& [name, backend] : families) {
        for (const double density : options.densities) timed.push_back(sparse(backend, problem, product, density, dtype));
      }
      for (int round = 0; round < options.rounds; ++round) {
        for (Timed& one : timed) one.run();
      }
      fmt::print("{:28} {:9.3f}",
                 fmt::format("{}->{} {}x{}{} {}", layer.in, layer.out, layer.size, layer.size, layer.stride == 2 ? "/2" : "",
                             kProducts[product]),
                 1e3 * timed[0].best());
      dense_all += layer.count * timed[0].best();
      std::size_t at = 1;
      for (std::size_t f = 0; f < families.size(); ++f) {
        for (const double density : options.densities) {
          fmt::print(" {:8.2f}x", timed[at].best() / timed[0].best());
          all[{f, density}] += layer.count * timed[at++].best();
        }
        fmt::print(" {:9}", timed[at - 1].workspace().count());
      }
      fmt::print("\n");
    }
  }
  fmt::print("{:28} {:9.2f}", "all 24 of the network", 1e3 * dense_all);
  for (std::size_t f = 0; f < families.size(); ++f) {
    for (const double density : options.densities) fmt::print(" {:8.2f}x", all[{f, density}] / dense_all);
    fmt::print(" {:9}", "");
  }
  fmt::print("\n");
}

}  // namespace

}  // namespace snug::bench

int main(int argc, char** argv) {
  snug::bench::Options options;
  CLI::App app{"Times sparse convolutions against dense ones."};
  app.add_option("--batch", options.batch, "images");
  app.add_option("--threads", options.threads, "threads (default: all cores)");
  app.add_option("--rounds", options.rounds, "runs of each, of which the fastest counts");
  app.add_option("--precision", options.precision, "fp32 or bf16");
  app.add_option("--densities", options.densities, "shares of the weights, as in 0.1,0.3")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    snug::bench::run(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sparse_bench: {}\n", error.what());
    return 1;
  }
}
