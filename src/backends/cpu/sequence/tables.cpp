#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/sequence/loops.h"
#include "backends/cpu/sequence/rows.h"
#include "backends/cpu/simd/loops.h"
#include "ir/example_rows.h"
#include "ops/sequence/rotary_angles.h"

// What reads a table: embeddings, positions, and rotations by position. The gradients of tables are sums over rows in their
// order, each row of the table by one thread, so the bits are the same on any number of threads.

namespace snug::backends::cpu {

namespace {

// Rows of a table at a time: enough that threads rarely have to ask for more.
constexpr std::int64_t kTableRows = 32;

// embedding(indices, table)
KernelMatch match_embedding(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {1})) return Refuse{*reason};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_embedding(const KernelArguments& arguments) {
  const Type& table = arguments.inputs[1].type;
  return with_storage(table.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([indices = reinterpret_cast<const std::int32_t*>(arguments.inputs[0].data),
                       table = elements<T>(arguments.inputs[1]), y = elements<T>(arguments.outputs[0]),
                       rows = arguments.outputs[0].type.shape[0], most = table.shape[0], columns = table.shape[1],
                       threads = arguments.threads] {
      for_each_part(rows, threads, 1, [&](int, Range part) {
        for (std::int64_t row = part.begin; row < part.end; ++row) {
          const std::int64_t index = indices[row];
          T* const to = y + row * columns;
          if (index >= 0 && index < most) {
            std::copy_n(table + index * columns, columns, to);
          } else {
            std::fill_n(to, columns, T{});
          }
        }
      });
    });
  });
}

// embedding_grad(indices, dy, accumulator?). The rows that name the same index are linked in their order.
struct IndexLinks {
  std::int32_t *first, *next;  // by index, and by row; -1: none

  IndexLinks(WorkspaceCutter& cutter, std::int64_t indices, std::int64_t rows)
      : first(reinterpret_cast<std::int32_t*>(cutter.cut(Bytes(4 * indices)))),
        next(reinterpret_cast<std::int32_t*>(cutter.cut(Bytes(4 * rows)))) {}

  void link(const std::int32_t* indices, std::int64_t rows, std::int64_t most) const {
    std::fill_n(first, most, -1);
    for (std::int64_t row = rows; row-- > 0;) {
      const std::int64_t index = indices[row];
      if (index < 0 || index >= most) continue;
      next[row] = first[index];
      first[index] = static_cast<std::int32_t>(row);
    }
  }
};

KernelMatch match_embedding_grad(const KernelQuery& query) {
  const bool adds = accumulates(query.attributes);
  if (auto reason = objection_to_rows(query, {1, adds ? 2U : 1U})) return Refuse{*reason};
  const Type& dy = query.inputs[1];
  WorkspaceCutter cutter;
  const IndexLinks links(cutter, query.outputs[0].shape[0], dy.shape[0]);
  cutter.cut(size_of_floats(dy.shape[1], query.threads));
  return Accept{.workspace = cutter.used()};
}

std::unique_ptr<BoundKernel> bind_embedding_grad(const KernelArguments& arguments) {
  const Type& gradient = arguments.outputs[0].type;
  const std::int64_t rows = arguments.inputs[1].type.shape[0];
  const std::int64_t most = gradient.shape[0];
  WorkspaceCutter cutter(arguments.workspace.data());
  const IndexLinks links(cutter, most, rows);
  auto* const sums = reinterpret_cast<float*>(cutter.cut(size_of_floats(gradient.shape[1], arguments.threads)));
  return with_storage(gradient.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([links, sums, rows, most, columns = gradient.shape[1],
                       indices = reinterpret_cast<const std::int32_t*>(arguments.inputs[0].data),
                       dy = elements<T>(arguments.inputs[1]), addend = addend_of<T>(arguments),
                       to = elements<T>(arguments.outputs[0]), threads = arguments.threads] {
      links.link(indices, rows, most);
      for_each_item((most + kTableRows - 1) / kTableRows, threads, [&](int thread, std::int64_t item) {
        float* const sum = sums + thread * stride_of_floats(columns);
        const std::int64_t end = std::min(most, (item + 1) * kTableRows);
        for (std::int64_t index = item * kTableRows; index < end; ++index) {
          T* const row_of_table = to + index * columns;
          const T* const before = addend == nullptr ? nullptr : addend + index * columns;
          // Most indices occur in no row. Their sums stay as they are: adding zero would at most change the sign of a zero.
          if (links.first[index] < 0 && before == row_of_table) continue;
          std::fill_n(sum, columns, 0.0F);
          for (std::int64_t row = links.first[index]; row >= 0; row = links.next[row])
            simd::table_loops<T>().add_row(dy + row * columns, sum, columns);
          put_row(sum, before, row_of_table, columns);
        }
      });
    });
  });
}

// add_positions(x, table)
KernelMatch match_add_positions(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0, 1})) return Refuse{*reason};
  return Accept{};
}

std::unique_ptr<BoundKernel> bind_add_positions(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), table = elements<T>(arguments.inputs[1]),
                       y = elements<T>(arguments.outputs[0]), rows = type.shape[0], columns = type.shape[1],
                       length = rows_per_example(arguments.attributes), threads = arguments.threads] {
      for_each_part(rows, threads, 1, [&](int, Range part) {
        for (std::int64_t row = part.begin; row < part.end; ++row)
          simd::element_loops<T>().add(x + row * columns, table + row % length * columns, y + row * columns, columns);
      });
    });
  });
}

// add_positions_grad(dy, accumulator?)
KernelMatch match_add_positions_grad(const KernelQuery& query) {
  const bool adds = accumulates(query.attributes);
  if (auto reason = objection_to_rows(query, {0, adds ? 1U : 0U})) return Refuse{*reason};
  return Accept{.workspace = size_of_floats(query.inputs[0].shape[1], query.threads)};
}

std::unique_ptr<BoundKernel> bind_add_positions_grad(const KernelArguments& arguments) {
  const Type& type = arguments.inputs[0].type;
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([dy = elements<T>(arguments.inputs[0]), addend = addend_of<T>(arguments),
                       to = elements<T>(arguments.outputs[0]), rows = type.shape[0], columns = type.shape[1],
                       length = rows_per_example(arguments.attributes), positions = arguments.outputs[0].type.shape[0],
                       sums = reinterpret_cast<float*>(arguments.workspace.data()), threads = arguments.threads] {
      for_each_part(positions, threads, 1, [&](int thread, Range part) {
        float* const sum = sums + thread * stride_of_floats(columns);
        for (std::int64_t position = part.begin; position < part.end; ++position) {
          std::fill_n(sum, columns, 0.0F);
          for (std::int64_t row = position; row < rows && position < length; row += length)
            simd::table_loops<T>().add_row(dy + row * columns, sum, columns);
          put_row(sum, addend == nullptr ? nullptr : addend + position * columns, to + position * columns, columns);
        }
      });
    });
  });
}

// rotary(x). A position's angles serve its rows of all examples; each thread has its own positions.
KernelMatch match_rotary(const KernelQuery& query) {
  if (auto reason = objection_to_rows(query, {0})) return Refuse{*reason};
  return Accept{.workspace = size_of_floats(query.attributes.integer("head_size"), query.threads)};
}

std::unique_ptr<BoundKernel> bind_rotary(const KernelArguments& arguments) {
  const Type& type = arguments.outputs[0].type;
  const std::int64_t size = arguments.attributes.integer("head_size");
  return with_storage(type.dtype, [&]<typename T>(T /*tag*/) {
    return make_bound([x = elements<T>(arguments.inputs[0]), y = elements<T>(arguments.outputs[0]), rows = type.shape[0],
                       columns = type.shape[1], heads = arguments.attributes.integer("heads"), size,
                       frequencies = ops::rotary_frequencies(arguments.attributes),
                       length = rows_per_example(arguments.attributes),
                       angles = reinterpret_cast<float*>(arguments.workspace.data()), threads = arguments.threads] {
      for_each_part(length, threads, 1, [&](int thread, Range part) {
        float* const cosine = angles + thread * stride_of_floats(size);
        float* const sine = cosine + size / 2;
        const simd::RowRotation rotation{.heads = heads, .half = size / 2, .cosine = cosine, .sine = sine};
        for (std::int64_t position = part.begin; position < part.end; ++position) {
          simd::rotation_angles(position, frequencies.data(), size / 2, cosine, sine);
          for (std::int64_t row = position; row < rows; row += length) {
            const T* const from = x + row * columns;
            T* const to = y + row * columns;
            simd::table_loops<T>().rotate(rotation, from, to);
            if (from != to) std::copy_n(from + heads * size, columns - heads * size, to + heads * size);
          }
        }
      });
    });
  });
}

}  // namespace

constinit const KernelDef simd_embedding{
    .name = "simd_embedding", .op = "embedding", .match = match_embedding, .bind = bind_embedding};
constinit const KernelDef simd_embedding_grad{
    .name = "simd_embedding_grad", .op = "embedding_grad", .match = match_embedding_grad, .bind = bind_embedding_grad};
constinit const KernelDef simd_add_positions{
    .name = "simd_add_positions", .op = "add_positions", .match = match_add_positions, .bind = bind_add_positions};
constinit const KernelDef simd_add_positions_grad{.name = "simd_add_positions_grad",
                                                  .op = "add_positions_grad",
                                                  .match = match_add_positions_grad,
                                                  .bind = bind_add_positions_grad};
constinit const KernelDef simd_rotary{.name = "simd_rotary", .op = "rotary", .match = match_rotary, .bind = bind_rotary};

}  // namespace snug::backends::cpu
