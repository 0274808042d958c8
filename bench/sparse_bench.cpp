// Sparse convolutions against dense ones: the three products of every convolution of WRN-28-2, by each family of kernels, at
// several densities. Times are the least of several runs, taken in turn, so that a busy moment of the machine hits all alike.
// Prints the tables of docs/performance.md.
//
//   sparse_bench                                    batch 10, all densities, fp32 and bf16
//   sparse_bench --shapes                           and every shape by itself
//   sparse_bench --batch 2 --densities 0.1,0.3 --threads 1 --precision fp16
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
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
#include "ops/sparse/sparse.h"
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
  bool shapes = false;  // each by itself too
  std::vector<std::string> precisions = {"fp32", "bf16"};
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
  std::string kernel() const { return std::string(plan_->program.sections.front().nodes.front().kernel); }

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

// Kernels that go about it in one way. As their names begin; expansion is by oneDNN or, for f16, through floats.
struct Family {
  std::string_view name;
  std::vector<std::string_view> prefixes;
  Backend backend;  // the CPU's with these sparse kernels alone

  Family(std::string_view called, std::vector<std::string_view> beginnings, int threads)
      : name(called), prefixes(std::move(beginnings)), backend(backends::cpu_backend(threads)) {
    std::erase_if(backend.kernels,
                  [&](const KernelDef* kernel) { return kernel->op.starts_with("sparse_conv2d") && !has(kernel->name); });
  }
  bool has(std::string_view kernel) const {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) { return kernel.starts_with(prefix); });
  }
};

std::vector<Family> families(int threads) {
  return {{"expansion", {"onednn_", "half_"}, threads}, {"pairs", {"pairs_"}, threads}, {"direct", {"direct_"}, threads}};
}

// Nothing when the family has no kernel for it.
std::optional<Timed> try_sparse(const Backend& backend, const Problem& p, std::size_t product, double density, DType dtype) {
  try {
    return sparse(backend, p, product, density, dtype);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Seconds by family and density, for one product of one shape or for a sum of them. A family that cannot make one of them has no
// sum.
struct Times {
  double dense = 0;
  std::map<std::string_view, std::vector<double>> by_family;
  std::vector<double> trained, fastest;  // as the backend chooses; the best family at each density
  std::map<std::string_view, Bytes> workspace;

  void add(const Times& other, double count) {
    const auto add_each = [&](std::vector<double>& sum, const std::vector<double>& more) {
      sum.resize(more.size());
      for (std::size_t i = 0; i < more.size(); ++i) sum[i] += count * more[i];
    };
    const bool is_first = dense == 0;
    dense += count * other.dense;
    add_each(trained, other.trained);
    add_each(fastest, other.fastest);
    if (is_first) {
      for (const auto& [name, seconds] : other.by_family) by_family[name] = {};
    }
    std::erase_if(by_family, [&](const auto& entry) { return !other.by_family.contains(entry.first); });
    for (auto& [name, seconds] : by_family) add_each(seconds, other.by_family.at(name));
  }
};

Times measure(const Options& options, const Backend& plain, const std::vector<Family>& all, const Problem& problem,
              std::size_t product, DType dtype) {
  struct Entry {
    const Family* family;
    std::vector<Timed> timed;  // by density
  };
  Timed reference = dense(plain, problem, product, dtype);
  std::vector<Entry> entries;
  for (const Family& family : all) {
    Entry entry{.family = &family, .timed = {}};
    for (const double density : options.densities) {
      auto timed = try_sparse(family.backend, problem, product, density, dtype);
      if (timed) entry.timed.push_back(std::move(*timed));
    }
    if (entry.timed.size() == options.densities.size()) entries.push_back(std::move(entry));
  }
  for (int round = 0; round < options.rounds; ++round) {
    reference.run();
    for (Entry& entry : entries) {
      for (Timed& timed : entry.timed) timed.run();
    }
  }
  Times times{.dense = reference.best(), .by_family = {}, .trained = {}, .fastest = {}, .workspace = {}};
  for (const Entry& entry : entries) {
    for (const Timed& timed : entry.timed) times.by_family[entry.family->name].push_back(timed.best());
    times.workspace.emplace(entry.family->name, entry.timed.back().workspace());
  }
  for (std::size_t i = 0; i < options.densities.size(); ++i) {
    const std::string chosen = sparse(plain, problem, product, options.densities[i], dtype).kernel();
    double best = 1e9;
    for (const Entry& entry : entries) {
      best = std::min(best, entry.timed[i].best());
      if (entry.family->has(chosen)) times.trained.push_back(entry.timed[i].best());
    }
    times.fastest.push_back(best);
    SNUG_CHECK(times.trained.size() == i + 1, "{} is of no family", chosen);
  }
  return times;
}

void print_head(const Options& options, std::string_view first, bool with_workspace) {
  fmt::print("| {} | dense, ms | kernels |", first);
  for (const double density : options.densities) fmt::print(" {:g}% |", 100 * density);
  fmt::print("{}\n|---|---|---|", with_workspace ? " workspace |" : "");
  for (std::size_t i = 0; i < options.densities.size(); ++i) fmt::print("---|");
  fmt::print("{}\n", with_workspace ? "---|" : "");
}

void print_row(std::string_view first, std::string_view kernels, const std::vector<double>& seconds, double dense_seconds) {
  fmt::print("| {} | {} | {} |", first, first.empty() ? "" : fmt::format("{:.2f}", 1e3 * dense_seconds), kernels);
  for (const double one : seconds) fmt::print(" {:.2f} |", one / dense_seconds);
}

void print_rows(std::string_view what, const Times& times, bool with_workspace) {
  std::string_view first = what;
  for (const auto& [name, seconds] : times.by_family) {
    print_row(first, name, seconds, times.dense);
    fmt::print("{}\n", with_workspace ? fmt::format(" {} |", times.workspace.at(name).count()) : "");
    first = "";
  }
}

DType dtype_of(const std::string& precision) {
  if (precision == "fp32") return DType::f32;
  if (precision == "bf16") return DType::bf16;
  if (precision == "fp16") return DType::f16;
  throw_user_error("--precision '{}' is not possible; give fp32, bf16 or fp16, or several of them, as in fp32,bf16", precision);
}

void run(const Options& options, const std::string& precision) {
  const int threads = thread_count(options.threads);
  const DType dtype = dtype_of(precision);
  const Backend plain = backends::cpu_backend(threads);
  const std::vector<Family> all = families(threads);
  Times sum;
  std::array<Times, kProducts.size()> by_product;
  std::map<std::string, Times> by_shape;
  std::vector<std::string> order;
  for (const Layer& layer : kLayers) {
    const Problem problem(layer, options.batch, dtype);
    for (std::size_t product = 0; product < kProducts.size(); ++product) {
      const Times times = measure(options, plain, all, problem, product, dtype);
      by_product[product].add(times, layer.count);
      sum.add(times, layer.count);
      order.push_back(fmt::format("{} to {}, {}x{}{}, {}", layer.in, layer.out, layer.size, layer.size,
                                  layer.stride == 2 ? ", stride 2" : "", kProducts[product]));
      by_shape.emplace(order.back(), times);
    }
  }
  print_head(options, precision, false);
  for (std::size_t product = 0; product < kProducts.size(); ++product) {
    const Times& times = by_product[product];
    print_rows(kProducts[product], times, false);
    print_row("", "as trained", times.trained, times.dense);
    fmt::print("\n");
  }
  print_row("all three", "as trained", sum.trained, sum.dense);
  fmt::print("\n");
  print_row("", "the fastest of each", sum.fastest, sum.dense);
  fmt::print("\n\n");
  if (!options.shapes) return;
  fmt::print("<details><summary>{}, shape by shape</summary>\n\n", precision);
  print_head(options, precision, true);
  for (const std::string& name : order) print_rows(name, by_shape.at(name), true);
  fmt::print("\n</details>\n\n");
}

void run(const Options& options) {
  const int threads = thread_count(options.threads);
  fmt::print(
      "The 24 convolutions of WRN-28-2 that are stored sparse, {} images, {} thread{}: time divided by the dense ones'.\n\n",
      options.batch, threads, threads == 1 ? "" : "s");
  for (const std::string& precision : options.precisions) run(options, precision);
}

}  // namespace

}  // namespace snug::bench

int main(int argc, char** argv) {
  snug::bench::Options options;
  CLI::App app{"Times sparse convolutions against dense ones."};
  app.add_option("--batch", options.batch, "images");
  app.add_option("--threads", options.threads, "threads (default: all cores)");
  app.add_option("--rounds", options.rounds, "runs of each, of which the fastest counts");
  app.add_option("--precision", options.precisions, "fp32, bf16, fp16, or several, as in fp32,bf16")->delimiter(',');
  app.add_flag("--shapes", options.shapes, "every shape by itself too");
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
