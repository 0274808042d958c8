#include "train/weights.h"

#include <array>

#include "base/error.h"
#include "base/printable.h"
#include "train/elements.h"
#include "train/sparse_weights.h"
#include "train/weights_tensors.h"

namespace snug::train {

namespace {

constexpr std::array kWeightRoles{Role::parameter, Role::statistic};

// PyTorch counts batches in every batch norm; nothing here depends on it.
bool is_batch_counter(std::string_view name) { return name.ends_with("num_batches_tracked"); }

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

void import_weights(const std::filesystem::path& path, Session& session) {
  const Program& program = session.plan().program;
  if (!sparse_tensor_infos(program).empty()) {
    throw_user_error("'{}' has dense weights, and those of '{}' are stored sparse; train with --nonzero 1, or without --init",
                     path.string(), program.name);
  }
  const SafetensorsReader reader(path);
  const std::string source = "'" + path.string() + "'";
  const std::vector<StateId> states = states_of(program, kWeightRoles);
  const TensorMatch match = match_tensors(program, states, reader.header(), is_batch_counter, source);
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
}

}  // namespace snug::train
