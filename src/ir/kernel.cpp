#include "ir/kernel.h"

#include <type_traits>

#include <fmt/format.h>

namespace snug {

KernelQuery Backend::query(const Node& node, const NodeTypes& types) const {
  return {.op = *node.op,
          .attributes = node.attributes,
          .inputs = types.inputs,
          .outputs = types.outputs,
          .threads = threads,
          .device = device.get()};
}

namespace {

template <typename T>
void append_raw(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// With their lengths, so that no two lists read alike.
template <typename T>
void append_list(std::string& key, std::span<const T> list) {
  append_raw(key, list.size());
  for (const T& item : list) append_raw(key, item);
}

void append_type(std::string& key, const Type& type) {
  append_raw(key, type.dtype);
  append_list(key, type.shape.dims());
  append_raw(key, type.layout.kind);
  append_list(key, std::span<const char>(type.layout.opaque_name));
  append_raw(key, type.layout.opaque_bytes.count());
  append_raw(key, type.storage.kind);
  append_raw(key, type.storage.nonzeros);
}

void append_attribute(std::string& key, const Attribute& attribute) {
  append_raw(key, attribute.index());
  std::visit(
      [&](const auto& value) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
          append_raw(key, value);
        else
          append_list(key, std::span(value));
      },
      attribute);
}

// Not text: written and read only here, and formatting numbers would cost more than some kernels take to answer.
std::string key_of(const KernelQuery& query) {
  std::string key;
  append_list(key, std::span<const char>(query.op.name));
  for (const auto& [name, value] : query.attributes.entries()) {
    append_list(key, std::span<const char>(name));
    append_attribute(key, value);
  }
  for (const auto& types : {query.inputs, query.outputs}) {
    append_raw(key, types.size());
    for (const Type& type : types) append_type(key, type);
  }
  return key;
}

}  // namespace

KernelAnswers::Entry& KernelAnswers::about(const KernelQuery& query) { return entries_[key_of(query)]; }

const KernelDef* Backend::choose(const KernelQuery& query, Accept& accept, std::vector<std::string>* refusals) const {
  KernelAnswers::Entry fresh;
  KernelAnswers::Entry& known = answers ? answers->about(query) : fresh;
  const auto ask_one_more = [&] {
    while (known.looked_at < kernels.size()) {
      const KernelDef* kernel = kernels[known.looked_at++];
      if (kernel->op != query.op.name) continue;
      known.answers.push_back({.kernel = kernel, .match = kernel->match(query)});
      return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < known.answers.size() || ask_one_more(); ++i) {
    const KernelAnswers::Answer& answer = known.answers[i];
    const auto refuse = [&](const std::string& reason) {
      if (refusals != nullptr) refusals->push_back(fmt::format("{}: {}", answer.kernel->name, reason));
    };
    if (const auto* refusal = std::get_if<Refuse>(&answer.match)) {
      refuse(refusal->reason);
      continue;
    }
    const Accept& accepted = std::get<Accept>(answer.match);
    if (workspace_limit && accepted.workspace > *workspace_limit) {
      refuse(
          fmt::format("needs {} bytes of workspace, and the limit is {}", accepted.workspace.count(), workspace_limit->count()));
      continue;
    }
    accept = accepted;
    return answer.kernel;
  }
  return nullptr;
}

const KernelDef* Backend::find(std::string_view kernel_name) const {
  for (const KernelDef* kernel : kernels) {
    if (kernel->name == kernel_name) return kernel;
  }
  return nullptr;
}

}  // namespace snug
