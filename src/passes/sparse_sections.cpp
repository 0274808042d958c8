#include "passes/sparse_sections.h"

#include <algorithm>

#include "base/error.h"
#include "ir/section_editor.h"
#include "ops/ops.h"
#include "ops/sparse.h"
#include "passes/remove_states.h"

namespace snug {

namespace {

Attributes grid_of(const SparseStore& sparse) {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
  for (const SparseTensor& tensor : sparse.tensors) {
    rows.push_back(tensor.shape[0]);
    columns.push_back(tensor.shape.elements() / tensor.shape[0]);
  }
  return {{"tensor_rows", rows}, {"tensor_columns", columns}, {"bits", std::int64_t{sparse.bits}}};
}

// A pattern, then each tensor's values at the places it gave.
void emit_initial_values(SectionEditor& editor, const SparseStore& sparse, StateId scalars) {
  Attributes attributes = grid_of(sparse);
  std::vector<std::int64_t> nonzeros;
  for (const SparseTensor& tensor : sparse.tensors) nonzeros.push_back(tensor.nonzeros);
  attributes.set("tensor_nonzeros", nonzeros);
  editor.emit_before(0, ops::init_sparse_pattern, {editor.read(sparse.columns), editor.read(sparse.rows), editor.read(scalars)},
                     attributes,
                     {.layer = "sparse", .role = Role::statistic, .phase = Phase::init, .writes = {sparse.columns, sparse.rows}});
  for (const SparseTensor& tensor : sparse.tensors) {
    SNUG_CHECK(tensor.initializer.kind == Initializer::Kind::normal || tensor.initializer.kind == Initializer::Kind::uniform,
               "the weight '{}' begins with no random values", tensor.name);
    const std::int64_t uniform = tensor.initializer.kind == Initializer::Kind::uniform ? 1 : 0;
    Attributes values{{"spread", tensor.initializer.amount}, {"uniform", uniform}, {"key", tensor.key}};
    ops::set_slot(values, {.first_row = tensor.first_row, .shape = tensor.shape, .bits = sparse.bits});
    editor.emit_before(0, ops::init_sparse,
                       {editor.read(sparse.weight), editor.read(sparse.columns), editor.read(sparse.rows), editor.read(scalars)},
                       values, {.layer = tensor.name, .role = Role::parameter, .phase = Phase::init, .writes = {sparse.weight}});
  }
}

Section rewiring(const Program& program, const SparseStore& sparse) {
  Section section{.kind = SectionKind::rewire, .values = {}, .nodes = {}};
  SectionBuilder builder(program.states, section);
  Attributes attributes = grid_of(sparse);
  attributes.set("target", sparse.target);
  attributes.set("per_tensor", std::int64_t{sparse.method == SparseStore::Method::set ? 1 : 0});
  std::vector<StateId> writes{sparse.weight, sparse.columns, sparse.rows, sparse.threshold, sparse.pruned};
  std::vector<ValueId> inputs{builder.read(sparse.weight), builder.read(sparse.columns), builder.read(sparse.rows),
                              builder.read(sparse.threshold), builder.read(program.scalars)};
  const std::size_t own_inputs = inputs.size();
  const Type& weight = program.state(sparse.weight).type;
  std::vector<StateId> to_clear;
  for (std::size_t i = 0; i < program.states.size(); ++i) {
    const State& state = program.states[i];
    if (state.role != Role::optimizer || state.owner != sparse.weight) continue;
    // What is kept of values that move is cleared: one state by the rewiring itself, others beside it; of codes it is enough to
    // clear their scales.
    if (state.type == weight && inputs.size() == own_inputs) {
      writes.push_back(StateId(i));
      inputs.push_back(builder.read(StateId(i)));
    } else if (state.purpose != "codes") {
      to_clear.push_back(StateId(i));
    }
  }
  builder.emit(ops::rewire, std::move(inputs), std::move(attributes),
               {.layer = "sparse", .role = Role::parameter, .phase = Phase::update, .writes = std::move(writes)});
  for (const StateId id : to_clear) {
    builder.emit(ops::fill, {builder.read(id)}, {{"value", 0.0}},
                 {.layer = "sparse", .role = Role::optimizer, .phase = Phase::update, .writes = {id}});
  }
  return section;
}

}  // namespace

Program add_sparse_sections(Program program, const SparseStore& sparse) {
  if (sparse.tensors.empty()) return program;
  Section* init = find_section(program, SectionKind::init);
  SNUG_CHECK(init != nullptr, "'{}' has no initial values", program.name);
  SectionEditor editor(program.states, *init);
  emit_initial_values(editor, sparse, program.scalars);
  editor.apply();
  if (!sparse.threshold.valid()) return program;
  Section section = rewiring(program, sparse);
  const auto eval = std::find_if(program.sections.begin(), program.sections.end(),
                                 [](const Section& one) { return one.kind == SectionKind::eval; });
  program.sections.insert(eval, std::move(section));
  return program;
}

}  // namespace snug
