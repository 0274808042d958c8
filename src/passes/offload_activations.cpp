#include "passes/offload_activations.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "ir/section_editor.h"
#include "ops/ops.h"
#include "passes/checkpoint/forward_chain.h"

namespace snug {

namespace {

// Below this, two copies cost more than the bytes are worth.
constexpr Bytes kLeastBytes{4096};

// Of a forward value that backward reads.
struct Wait {
  std::size_t from = 0;   // the last forward node that makes or reads it
  std::size_t until = 0;  // the first node after forward that reads it
};

std::optional<Wait> find_wait(SectionEditor& editor, ValueId id, std::size_t end) {
  const std::size_t maker = editor.maker(id);
  if (maker == SectionEditor::kNobody || maker >= end) return std::nullopt;
  const std::vector<std::size_t>& readers = editor.readers(id);
  const auto behind = std::ranges::lower_bound(readers, end);
  if (behind == readers.end()) return std::nullopt;
  return Wait{.from = behind == readers.begin() ? maker : *std::prev(behind), .until = *behind};
}

void offload(SectionEditor& editor, ValueId id, const Wait& wait) {
  const Value value = editor.value(id);
  EmitOptions options{
      .name = value.name + ".host", .layer = editor.node(editor.maker(id)).layer, .role = value.role, .phase = Phase::forward};
  const ValueId kept = editor.emit_behind(wait.from, ops::copy_to_space, {id}, {{"host", std::int64_t{1}}}, options).front();
  options.name = value.name + ".back";
  options.phase = Phase::backward;
  const ValueId back = editor.emit_before(wait.until, ops::copy_to_space, {kept}, {{"host", std::int64_t{0}}}, options).front();
  editor.replace_uses(id, back, wait.until);
}

}  // namespace

Program offload_activations(Program program, const PassContext& /*context*/) {
  for (Section& section : program.sections) {
    if (section.kind != SectionKind::micro) continue;
    SectionEditor editor(section);
    const std::size_t end = end_of_forward(section);
    const std::size_t values = section.values.size();
    for (std::size_t v = 0; v < values; ++v) {
      const Value& value = section.values[v];
      if (value.is_state() || value.space != MemorySpace::device || value.type.bytes() < kLeastBytes) continue;
      const std::optional<Wait> wait = find_wait(editor, ValueId(v), end);
      // For some time the value must be kept and not used.
      if (wait && wait->until > wait->from + 1) offload(editor, ValueId(v), *wait);
    }
    editor.apply();
  }
  return program;
}

}  // namespace snug
