#include "train/weights.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/printable.h"
#include "ir/op.h"
#include "train/elements.h"
#include "train/sparse_weights.h"
#include "train/weights_tensors.h"

namespace snug::train {

namespace {

constexpr std::array kWeightRoles{Role::parameter, Role::statistic};

// PyTorch counts batches in every batch norm; nothing here depends on it.
bool is_batch_counter(std::string_view name) { return name.ends_with("num_batches_tracked"); }

// The number of classes that the model tells apart; 0: it has no such loss.
std::int64_t classes_of(const Program& program) {
  const Section* micro = program.find_section(SectionKind::micro);
  if (micro == nullptr) return 0;
  for (const Node& node : micro->nodes) {
    if (node.op->is_loss) return micro->value(node.inputs[0]).type.shape[1];
  }
  return 0;
}

// "fc" of "fc.weight"
std::string_view layer_of(std::string_view name) { return name.substr(0, std::min(name.rfind('.'), name.size())); }

// A classifier in the file that differs from the model's in its number of classes.
struct OtherClassifier {
  std::vector<std::string> names;  // of its parameters; empty: there is none
  std::int64_t classes = 0;        // in the file
};

// A layer whose parameters differ in their first dimension alone, which counts the classes, while all other parameters are alike.
// It must be the last layer: another one's outputs are the next one's inputs, which would differ, too.
OtherClassifier find_other_classifier(const Program& program, std::span<const StateId> states, const SafetensorsHeader& header) {
  std::unordered_map<std::string_view, const TensorInfo*> in_file;
  for (const TensorInfo& tensor : header.tensors) in_file.emplace(tensor.name, &tensor);
  const std::int64_t classes = classes_of(program);
  OtherClassifier other;
  for (const StateId id : states) {
    const TensorInfo expected = tensor_of(program.state(id));
    const auto found = in_file.find(expected.name);
    if (found == in_file.end() || found->second->shape == expected.shape) continue;
    const auto& shape = found->second->shape;
    const bool differs_in_first = !expected.shape.empty() && shape.size() == expected.shape.size() &&
                                  std::equal(shape.begin() + 1, shape.end(), expected.shape.begin() + 1);
    if (!differs_in_first || expected.shape[0] != classes) return {};
    const bool first = other.names.empty();
    if (!first && (shape[0] != other.classes || layer_of(expected.name) != layer_of(other.names.front()))) return {};
    other.names.push_back(expected.name);
    other.classes = shape[0];
  }
  // All of the layer, or weight and bias would not go together.
  const auto is_torn = [&](StateId id) {
    const std::string& name = program.state(id).name;
    return layer_of(name) == layer_of(other.names.front()) && std::ranges::find(other.names, name) == other.names.end();
  };
  if (!other.names.empty() && std::ranges::any_of(states, is_torn)) return {};
  return other;
}

}  // namespace

void export_weights(const std::filesystem::path& path, const Session& session) {
  const Program& program = session.plan().program;
  std::vector<StateId> states = states_of(program, kWeightRoles);
  std::erase_if(states, [&](StateId id) { return is_sparse_store(program, program.state(id)); });
  std::vector<TensorInfo> tensors;
  tensors.reserve(states.size());
  for (const StateId id : states) tensors.push_back(tensor_of(program.state(id)));
  // Sparse weights are as wide as other weights or narrower: behind them every tensor lies on a multiple of its element's size.
  const std::vector<TensorInfo> sparse = sparse_tensor_infos(program);
  tensors.insert(tensors.end(), sparse.begin(), sparse.end());

  AtomicFile file(path);
  const std::string header = make_safetensors_header(tensors, {{"format", "pt"}, {"model", program.name}});
  file.write(std::as_bytes(std::span(header)));
  for (const StateId id : states)
    session.read_logical_in_pieces(id, [&](std::span<const std::byte> piece) { file.write(piece); });
  for (std::size_t i = 0; i < sparse.size(); ++i)
    read_sparse_tensor(session, i, [&](std::span<const std::byte> row) { file.write(row); });
  file.commit();
}

std::string import_weights(const std::filesystem::path& path, Session& session) {
  const Program& program = session.plan().program;
  if (!sparse_tensor_infos(program).empty()) {
    throw_user_error("'{}' has dense weights, and those of '{}' are stored sparse; train with --nonzero 1, or without --init",
                     path.string(), program.name);
  }
  const SafetensorsReader reader(path);
  const std::string source = "'" + path.string() + "'";
  std::vector<StateId> states = states_of(program, kWeightRoles);
  const OtherClassifier other = find_other_classifier(program, states, reader.header());
  const auto is_left_out = [&](std::string_view name) { return std::ranges::find(other.names, name) != other.names.end(); };
  std::erase_if(states, [&](StateId id) { return is_left_out(program.state(id).name); });
  const auto is_passed_over = [&](std::string_view name) { return is_batch_counter(name) || is_left_out(name); };
  const TensorMatch match =
      match_tensors(program, states, reader.header(), is_passed_over, source, "; use weights of the same model");
  for (const TensorInfo* tensor : match.tensors) {
    const auto dtype = to_dtype(tensor->dtype);
    if (!dtype || !is_floating(*dtype))
      throw_user_error("{}: tensor {} is {}; weights are F64, F32, F16 or BF16", source, in_quotes(tensor->name),
                       name_of(tensor->dtype));
  }
  std::vector<std::byte> stored;
  std::vector<std::byte> converted;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const TensorInfo& tensor = *match.tensors[i];
    const DType from = *to_dtype(tensor.dtype);
    const DType to = program.state(states[i]).type.dtype;
    stored.resize(static_cast<std::size_t>(tensor.bytes));
    reader.read(tensor, stored);
    if (from == to) {
      session.write_logical(states[i], stored);
      continue;
    }
    converted.resize(session.logical_bytes(states[i]));
    convert_elements(from, stored, to, converted);
    session.write_logical(states[i], converted);
  }
  if (other.names.empty()) return {};
  return fmt::format("{} of {} {} for {}, this run has {}: {} from random values", fmt::join(other.names, " and "), source,
                     other.names.size() == 1 ? "is" : "are", counted(other.classes, "class", "classes"), classes_of(program),
                     other.names.size() == 1 ? "it starts" : "they start");
}

}  // namespace snug::train
