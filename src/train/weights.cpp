#include "train/weights.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/pieces.h"
#include "base/printable.h"
#include "io/elements.h"
#include "io/weights_file.h"
#include "io/weights_tensors.h"
#include "ir/loss.h"
#include "train/sparse_weights.h"

namespace snug::train {

namespace {

constexpr std::array kWeightRoles{Role::parameter, Role::statistic};

// PyTorch counts batches in every batch norm; nothing here depends on it.
bool is_batch_counter(std::string_view name) { return name.ends_with("num_batches_tracked"); }

// "fc" of "fc.weight"
std::string_view layer_of(std::string_view name) { return name.substr(0, std::min(name.rfind('.'), name.size())); }

// A classifier in the file that differs from the model's in its number of classes.
struct OtherClassifier {
  std::vector<std::string> names;  // of its parameters; empty: there is none
  std::int64_t classes = 0;        // in the file
};

// A layer whose parameters differ in their first dimension alone, the number of classes, while all other parameters match. It
// must be the last layer: the outputs of any other are the next one's inputs, which would differ too.
OtherClassifier find_other_classifier(const Program& program, std::span<const StateId> states,
                                      const io::SafetensorsHeader& header) {
  std::unordered_map<std::string_view, const io::TensorInfo*> in_file;
  for (const io::TensorInfo& tensor : header.tensors) in_file.emplace(tensor.name, &tensor);
  const std::int64_t classes = loss_of(program).classes;
  OtherClassifier other;
  for (const StateId id : states) {
    const io::TensorInfo expected = io::tensor_of(program.state(id));
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
  // All of the layer, or weight and bias would not match.
  const auto is_torn = [&](StateId id) {
    const std::string& name = program.state(id).name;
    return layer_of(name) == layer_of(other.names.front()) && std::ranges::find(other.names, name) == other.names.end();
  };
  if (!other.names.empty() && std::ranges::any_of(states, is_torn)) return {};
  return other;
}

// The tensors whose names begin with the prefix, without it, and how many others there are.
struct Unprefixed {
  io::SafetensorsHeader header;
  std::size_t others = 0;
  std::string first_other;
};

Unprefixed without_prefix(const io::SafetensorsHeader& header, std::string_view prefix) {
  Unprefixed result;
  for (const io::TensorInfo& tensor : header.tensors) {
    if (!tensor.name.starts_with(prefix)) {
      if (result.others++ == 0) result.first_other = tensor.name;
      continue;
    }
    result.header.tensors.push_back(tensor);
    result.header.tensors.back().name.erase(0, prefix.size());
  }
  return result;
}

// "model." where the file has "model.fc.weight" instead of the model's "fc.weight"; empty: it has nothing like that.
std::string find_prefix(const Program& program, std::span<const StateId> states, const io::SafetensorsHeader& header) {
  std::unordered_set<std::string_view> names;
  for (const io::TensorInfo& tensor : header.tensors) names.insert(tensor.name);
  for (const StateId id : states) {
    const std::string& name = program.state(id).name;
    if (names.contains(name)) return {};
  }
  if (states.empty()) return {};
  const std::string end = "." + program.state(states.front()).name;
  const auto found =
      std::ranges::find_if(header.tensors, [&](const io::TensorInfo& tensor) { return tensor.name.ends_with(end); });
  return found == header.tensors.end() ? "" : found->name.substr(0, found->name.size() - end.size() + 1);
}

// Converts while it reads: never more than a piece of the tensor is in memory.
void read_weight(const io::WeightsFile& file, const io::TensorInfo& tensor, Session& session, StateId id) {
  const DType from = *io::to_dtype(tensor.dtype);
  const DType to = session.plan().program.state(id).type.dtype;
  const std::size_t from_bytes = io::bytes_per_element(tensor.dtype);
  const std::size_t to_bytes = static_cast<std::size_t>(bits_per_element(to)) / 8;
  std::uint64_t done = 0;
  std::vector<std::byte> stored;
  session.write_logical_in_pieces(id, [&](std::span<std::byte> piece) {
    if (from == to) {
      file.read(tensor, done, piece);
      done += piece.size();
      return;
    }
    for_each_piece(piece.size() / to_bytes, kPieceBytes / from_bytes, [&](std::size_t first, std::size_t count) {
      stored.resize(count * from_bytes);
      file.read(tensor, done, stored);
      done += stored.size();
      io::convert_elements(from, stored, to, piece.subspan(first * to_bytes, count * to_bytes));
    });
  });
}

// How much of a model of `total` tensors came from the file, which of the wanted states did not, and what else the file has.
std::string describe_part(const io::TensorMatch& match, const Program& program, std::span<const StateId> states,
                          std::size_t total, std::string_view source, std::size_t unused) {
  std::vector<StateId> drawn;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (match.tensors[i] == nullptr) drawn.push_back(states[i]);
  }
  std::string text = fmt::format("{} of the {} of '{}' come from {}", states.size() - drawn.size(), counted(total, "tensor"),
                                 program.name, source);
  if (!drawn.empty()) {
    text += fmt::format(", {} ({}{}) {} from initial values", drawn.size() == 1 ? "one" : fmt::format("{}", drawn.size()),
                        in_quotes(program.state(drawn.front()).name), io::and_more(drawn.size()),
                        drawn.size() == 1 ? "starts" : "start");
  }
  if (unused > 0) text += fmt::format("; {} of the file {} not used", counted(unused, "tensor"), unused == 1 ? "is" : "are");
  return text;
}

}  // namespace

std::map<std::string, std::string> weights_metadata(const data::Description& trained_on) {
  const auto text = [](const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (trained_on.kind == data::Kind::text) {
    return {{"snug.tokenizer", text(trained_on.text.tokenizer)},
            {"snug.vocabulary", fmt::format("{}", trained_on.text.vocabulary)},
            {"snug.length", fmt::format("{}", trained_on.text.length)}};
  }
  return {{"snug.classes", text(trained_on.class_names)},
          {"snug.image_size", fmt::format("{}", trained_on.height)},
          {"snug.mean", text(trained_on.mean)},
          {"snug.std", text(trained_on.std)}};
}

void export_weights(const std::filesystem::path& path, const Session& session,
                    const std::map<std::string, std::string>& metadata) {
  const Program& program = session.plan().program;
  std::vector<StateId> states = io::states_of(program, kWeightRoles);
  std::erase_if(states, [&](StateId id) { return is_sparse_store(program, program.state(id)); });
  std::vector<io::TensorInfo> tensors;
  tensors.reserve(states.size());
  for (const StateId id : states) tensors.push_back(io::tensor_of(program.state(id)));
  // Elements of sparse weights are not wider than those of others: after them every tensor lies on a multiple of its element's
  // size.
  const std::vector<io::TensorInfo> sparse = sparse_tensor_infos(program);
  tensors.insert(tensors.end(), sparse.begin(), sparse.end());

  io::AtomicFile file(path);
  std::map<std::string, std::string> entries{{"format", "pt"}, {"model", program.name}};
  entries.insert(metadata.begin(), metadata.end());
  const std::string header = io::make_safetensors_header(tensors, entries);
  file.write(std::as_bytes(std::span(header)));
  for (const StateId id : states)
    session.read_logical_in_pieces(id, [&](std::span<const std::byte> piece) { file.write(piece); });
  for (std::size_t i = 0; i < sparse.size(); ++i)
    read_sparse_tensor(session, i, [&](std::span<const std::byte> row) { file.write(row); });
  file.commit();
}

std::string import_weights(const std::filesystem::path& path, Session& session, const ImportOptions& options) {
  const Program& program = session.plan().program;
  if (!sparse_tensor_infos(program).empty()) {
    throw_user_error("'{}' has dense weights, and those of '{}' are stored sparse; train with --nonzero 1, or without --init",
                     path.string(), program.name);
  }
  const io::WeightsFile file(path);
  const std::string& source = file.source();
  const Unprefixed named = without_prefix(file.header(), options.prefix);
  if (named.header.tensors.empty() && named.others > 0) {
    throw_user_error("no name in {} begins with {}; its first tensor is {}: give another --init-prefix, or none", source,
                     in_quotes(options.prefix), in_quotes(named.first_other));
  }
  std::vector<StateId> states = io::states_of(program, kWeightRoles);
  const OtherClassifier other = options.strict ? OtherClassifier() : find_other_classifier(program, states, named.header);
  const auto is_left_out = [&](std::string_view name) { return std::ranges::find(other.names, name) != other.names.end(); };
  std::erase_if(states, [&](StateId id) { return is_left_out(program.state(id).name); });

  const std::string prefix = options.prefix.empty() ? find_prefix(program, states, named.header) : "";
  const std::string_view same_model = "; use weights of the same model";
  const std::string way_out = !prefix.empty()
                                  ? fmt::format("; its names begin with {0}: give --init-prefix {0}", printable(prefix))
                              : options.partial ? std::string(same_model)
                                                : fmt::format("{}, or take what fits with --init-partial", same_model);
  const io::TensorMatch match =
      io::match_tensors(program, states, named.header,
                        {.source = source,
                         .way_out = same_model,
                         .way_out_of_names = way_out,
                         .ignored = [&](std::string_view name) { return is_batch_counter(name) || is_left_out(name); },
                         .partial = options.partial});
  if (named.others > 0 && !options.partial) {
    throw_user_error("{} has a tensor {}{} whose name does not begin with {}{}", source, in_quotes(named.first_other),
                     io::and_more(named.others), in_quotes(options.prefix), way_out);
  }
  std::vector<StateId> given;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const io::TensorInfo* tensor = match.tensors[i];
    if (tensor == nullptr) continue;
    given.push_back(states[i]);
    const auto dtype = io::to_dtype(tensor->dtype);
    if (!dtype || !is_floating(*dtype))
      throw_user_error("{}: tensor {} is {}; weights are F64, F32, F16 or BF16", source, in_quotes(tensor->name),
                       name_of(tensor->dtype));
  }
  if (given.empty()) throw_user_error("{} has none of the tensors of the model '{}'{}", source, program.name, way_out);

  session.initialize_all_but(given);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (match.tensors[i] != nullptr) read_weight(file, *match.tensors[i], session, states[i]);
  }
  session.derive();

  std::string said;
  if (options.partial)
    said = describe_part(match, program, states, states.size() + other.names.size(), source, match.unused + named.others);
  if (other.names.empty()) return said;
  if (!said.empty()) said += "; ";
  return said + fmt::format("{} of {} {} for {}, this run has {}: {} from random values", fmt::join(other.names, " and "), source,
                            other.names.size() == 1 ? "is" : "are", counted(other.classes, "class", "classes"),
                            loss_of(program).classes, other.names.size() == 1 ? "it starts" : "they start");
}

}  // namespace snug::train
