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
#include "io/published_weights.h"
#include "io/transposed.h"
#include "io/weights_file.h"
#include "io/weights_tensors.h"
#include "ir/loss.h"
#include "train/sparse_weights.h"

namespace snug::train {

namespace {

constexpr std::array kWeightRoles{Role::parameter, Role::statistic};
constexpr std::string_view kModel = "model", kNames = "snug.names";

using Tensors = std::vector<io::PublishedTensor>;

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
OtherClassifier find_other_classifier(const Program& program, const Tensors& tensors, const io::SafetensorsHeader& header) {
  std::unordered_map<std::string_view, const io::TensorInfo*> in_file;
  for (const io::TensorInfo& tensor : header.tensors) in_file.emplace(tensor.name, &tensor);
  const std::int64_t classes = loss_of(program).classes;
  OtherClassifier other;
  for (const io::PublishedTensor& tensor : tensors) {
    const io::TensorInfo& expected = tensor.info;
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
  const auto is_torn = [&](const io::PublishedTensor& tensor) {
    return layer_of(tensor.info.name) == layer_of(other.names.front()) &&
           std::ranges::find(other.names, tensor.info.name) == other.names.end();
  };
  if (!other.names.empty() && std::ranges::any_of(tensors, is_torn)) return {};
  return other;
}

// How a model's states are published in this file.
const io::PublishedFamily* family_in(const io::SafetensorsHeader& header, const Program& program) {
  const bool is_own = header.metadata.contains(std::string(kModel)) && !header.metadata.contains(std::string(kNames));
  return is_own ? nullptr : io::find_published_family(program);
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

// The names of an inner model's file as in one of the whole model.
void complete_names(io::SafetensorsHeader& header, std::string_view inner_prefix, const Tensors& tensors) {
  std::unordered_set<std::string_view> wanted;
  for (const io::PublishedTensor& tensor : tensors) wanted.insert(tensor.info.name);
  std::unordered_set<std::string> present;
  for (const io::TensorInfo& tensor : header.tensors) present.insert(tensor.name);
  for (io::TensorInfo& tensor : header.tensors) {
    const std::string whole = std::string(inner_prefix) + tensor.name;
    if (wanted.contains(whole) && !present.contains(whole)) tensor.name = whole;
  }
}

// "model." where the file has "model.fc.weight" instead of the model's "fc.weight"; empty: it has nothing like that.
std::string find_prefix(const Tensors& tensors, const io::PublishedFamily* family, const io::SafetensorsHeader& header) {
  std::unordered_set<std::string_view> names;
  for (const io::TensorInfo& tensor : header.tensors) names.insert(tensor.name);
  const auto is_in_file = [&](const io::PublishedTensor& tensor) { return names.contains(tensor.info.name); };
  if (tensors.empty() || std::ranges::any_of(tensors, is_in_file)) return {};
  std::string_view name = tensors.front().info.name;
  const auto before = [&](std::string_view wanted) {
    const std::string end = "." + std::string(wanted);
    const auto found =
        std::ranges::find_if(header.tensors, [&](const io::TensorInfo& tensor) { return tensor.name.ends_with(end); });
    return found == header.tensors.end() ? "" : found->name.substr(0, found->name.size() - end.size() + 1);
  };
  std::string prefix = before(name);
  if (prefix.empty() && family != nullptr && name.starts_with(family->inner_prefix))
    prefix = before(name.substr(family->inner_prefix.size()));
  return prefix;
}

bool have_same_elements(const io::WeightsFile& file, const io::TensorInfo& a, const io::TensorInfo& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  std::vector<std::byte> of_a, of_b;
  for (std::uint64_t done = 0; done < a.bytes; done += of_a.size()) {
    of_a.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, a.bytes - done)));
    of_b.resize(of_a.size());
    file.read(a, done, of_a);
    file.read(b, done, of_b);
    if (of_a != of_b) return false;
  }
  return true;
}

// Whether the file has the table of tokens once more as the classifier. UserError where that is another matrix: the model has one
// for both.
bool repeats_table(const io::WeightsFile& file, const io::SafetensorsHeader& header, const io::PublishedFamily& family,
                   std::string_view model, bool partial) {
  const std::string name = std::string(family.prefix) + std::string(family.has.front());
  const io::TensorInfo* table = header.find(name);
  const io::TensorInfo* classifier = header.find(family.classifier);
  if (table == nullptr || classifier == nullptr) return false;
  if (have_same_elements(file, *table, *classifier)) return true;
  if (partial) return false;
  throw_user_error(
      "{} has another matrix as {} than as {}, and '{}' uses one for both; use weights whose classifier is tied to it",
      file.source(), in_quotes(family.classifier), in_quotes(name), model);
}

// Converts while it reads: never more than a piece of the tensor is in memory, or a band of one that is transposed.
void read_weight(const io::WeightsFile& file, const io::TensorInfo& tensor, Session& session, const io::PublishedTensor& target) {
  const DType from = *io::to_dtype(tensor.dtype);
  const DType to = session.plan().program.state(target.state).type.dtype;
  const std::size_t from_bytes = io::bytes_per_element(tensor.dtype);
  const std::size_t to_bytes = static_cast<std::size_t>(bits_per_element(to)) / 8;
  io::Transposed::Read read = [&](std::uint64_t begin, std::span<std::byte> bytes) { file.read(tensor, begin, bytes); };
  std::optional<io::Transposed> transposed;
  if (target.is_transposed) {
    transposed.emplace(tensor.shape[0], tensor.shape[1], from_bytes, std::move(read));
    read = [&](std::uint64_t begin, std::span<std::byte> bytes) { transposed->read(begin, bytes); };
  }
  std::uint64_t done = 0;
  std::vector<std::byte> stored;
  const std::size_t size = static_cast<std::size_t>(tensor.bytes) / from_bytes * to_bytes;
  session.write_logical_in_pieces(target.state, target.first_byte, size, [&](std::span<std::byte> piece) {
    if (from == to) {
      read(done, piece);
      done += piece.size();
      return;
    }
    for_each_piece(piece.size() / to_bytes, kPieceBytes / from_bytes, [&](std::size_t first, std::size_t count) {
      stored.resize(count * from_bytes);
      read(done, stored);
      done += stored.size();
      io::convert_elements(from, stored, to, piece.subspan(first * to_bytes, count * to_bytes));
    });
  });
}

void write_weight(const Session& session, const io::PublishedTensor& source, io::AtomicFile& file) {
  const std::size_t size = static_cast<std::size_t>(source.info.bytes);
  if (!source.is_transposed) {
    return session.read_logical_in_pieces(source.state, source.first_byte, size,
                                          [&](std::span<const std::byte> piece) { file.write(piece); });
  }
  io::Transposed transposed(source.info.shape[1], source.info.shape[0], io::bytes_per_element(source.info.dtype),
                            [&](std::uint64_t begin, std::span<std::byte> bytes) {
                              session.read_logical_part(source.state, source.first_byte + static_cast<std::size_t>(begin), bytes);
                            });
  std::vector<std::byte> piece;
  for_each_piece(size, kPieceBytes, [&](std::size_t begin, std::size_t count) {
    piece.resize(count);
    transposed.read(begin, piece);
    file.write(piece);
  });
}

// With the sparse weights of the program, or without.
void write_file(const std::filesystem::path& path, const Session& session, std::span<const StateId> states,
                const std::vector<io::TensorInfo>& sparse, std::map<std::string, std::string> metadata) {
  const Program& program = session.plan().program;
  const io::PublishedFamily* family = io::find_published_family(program);
  if (family != nullptr) metadata.emplace(kNames, family->convention);
  metadata.insert({{"format", "pt"}, {std::string(kModel), program.name}});
  const Tensors tensors = io::published_tensors(family, program, states);
  std::vector<io::TensorInfo> infos;
  for (const io::PublishedTensor& tensor : tensors) infos.push_back(tensor.info);
  // Elements of sparse weights are not wider than those of others: after them every tensor lies on a multiple of its element's
  // size.
  infos.insert(infos.end(), sparse.begin(), sparse.end());
  io::AtomicFile file(path);
  const std::string header = io::make_safetensors_header(infos, metadata);
  file.write(std::as_bytes(std::span(header)));
  for (const io::PublishedTensor& tensor : tensors) write_weight(session, tensor, file);
  for (std::size_t i = 0; i < sparse.size(); ++i)
    read_sparse_tensor(session, i, [&](std::span<const std::byte> row) { file.write(row); });
  file.commit();
}

// How much of a model of `total` tensors came from the file, which of the wanted did not, and what else the file has.
std::string describe_part(const io::TensorMatch& match, std::string_view model, const Tensors& tensors, std::size_t total,
                          std::string_view source, std::size_t unused) {
  std::vector<std::string_view> drawn;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (match.tensors[i] == nullptr) drawn.push_back(tensors[i].info.name);
  }
  std::string text =
      fmt::format("{} of the {} of '{}' come from {}", tensors.size() - drawn.size(), counted(total, "tensor"), model, source);
  if (!drawn.empty()) {
    text += fmt::format(", {} ({}{}) {} from initial values", drawn.size() == 1 ? "one" : fmt::format("{}", drawn.size()),
                        in_quotes(drawn.front()), io::and_more(drawn.size()), drawn.size() == 1 ? "starts" : "start");
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
  write_file(path, session, states, sparse_tensor_infos(program), metadata);
}

void export_states(const std::filesystem::path& path, const Session& session, std::span<const StateId> states) {
  write_file(path, session, states, {}, {});
}

std::string import_weights(const std::filesystem::path& path, Session& session, const ImportOptions& options) {
  const Program& program = session.plan().program;
  if (!sparse_tensor_infos(program).empty()) {
    throw_user_error("'{}' has dense weights, and those of '{}' are stored sparse; train with --nonzero 1, or without --init",
                     path.string(), program.name);
  }
  const io::WeightsFile file(path);
  const std::string& source = file.source();
  Unprefixed named = without_prefix(file.header(), options.prefix);
  if (named.header.tensors.empty() && named.others > 0) {
    throw_user_error("no name in {} begins with {}; its first tensor is {}: give another --init-prefix, or none", source,
                     in_quotes(options.prefix), in_quotes(named.first_other));
  }
  const io::PublishedFamily* family = family_in(file.header(), program);
  Tensors tensors = io::published_tensors(family, program, io::states_of(program, kWeightRoles));
  if (family != nullptr) complete_names(named.header, family->inner_prefix, tensors);
  const OtherClassifier other = options.strict ? OtherClassifier() : find_other_classifier(program, tensors, named.header);
  const auto is_left_out = [&](std::string_view name) { return std::ranges::find(other.names, name) != other.names.end(); };
  std::erase_if(tensors, [&](const io::PublishedTensor& tensor) { return is_left_out(tensor.info.name); });
  const bool has_repeated_table = family != nullptr && repeats_table(file, named.header, *family, program.name, options.partial);
  const auto is_skipped = [&](std::string_view name) {
    return is_batch_counter(name) || is_left_out(name) || (has_repeated_table && name == family->classifier) ||
           (family != nullptr && std::ranges::any_of(family->buffers, [&](std::string_view end) { return name.ends_with(end); }));
  };

  const std::string prefix = options.prefix.empty() ? find_prefix(tensors, family, named.header) : "";
  const std::string_view same_model = "; use weights of the same model";
  const std::string way_out = !options.names_flags ? std::string(same_model)
                              : !prefix.empty()
                                  ? fmt::format("; its names begin with {0}: give --init-prefix {0}", printable(prefix))
                              : options.partial ? std::string(same_model)
                                                : fmt::format("{}, or take what fits with --init-partial", same_model);
  std::vector<io::TensorInfo> wanted;
  for (const io::PublishedTensor& tensor : tensors) wanted.push_back(tensor.info);
  const io::TensorMatch match = io::match_tensors(wanted, named.header,
                                                  {.source = source,
                                                   .model = program.name,
                                                   .way_out = same_model,
                                                   .way_out_of_names = way_out,
                                                   .ignored = is_skipped,
                                                   .partial = options.partial});
  if (named.others > 0 && !options.partial) {
    throw_user_error("{} has a tensor {}{} whose name does not begin with {}{}", source, in_quotes(named.first_other),
                     io::and_more(named.others), in_quotes(options.prefix), way_out);
  }
  // A state is given when all of its tensors are.
  std::vector<StateId> given;
  std::vector<StateId> incomplete;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const io::TensorInfo* tensor = match.tensors[i];
    (tensor == nullptr ? incomplete : given).push_back(tensors[i].state);
    if (tensor == nullptr) continue;
    const auto dtype = io::to_dtype(tensor->dtype);
    if (!dtype || !is_floating(*dtype))
      throw_user_error("{}: tensor {} is {}; weights are F64, F32, F16 or BF16", source, in_quotes(tensor->name),
                       name_of(tensor->dtype));
  }
  if (given.empty()) throw_user_error("{} has none of the tensors of the model '{}'{}", source, program.name, way_out);
  std::erase_if(given, [&](StateId id) { return std::ranges::find(incomplete, id) != incomplete.end(); });

  session.initialize_all_but(given);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (match.tensors[i] != nullptr) read_weight(file, *match.tensors[i], session, tensors[i]);
  }
  session.derive();

  std::string said;
  if (options.partial) {
    said = describe_part(match, program.name, tensors, tensors.size() + other.names.size(), source, match.unused + named.others);
  }
  if (other.names.empty()) return said;
  if (!said.empty()) said += "; ";
  const ProgramLoss loss = loss_of(program);
  const bool of_tokens = loss.facts->unit == "tokens";
  return said + fmt::format("{} of {} {} for {}, this run has {}: {} from random values", fmt::join(other.names, " and "), source,
                            other.names.size() == 1 ? "is" : "are",
                            counted(other.classes, of_tokens ? "token" : "class", of_tokens ? "tokens" : "classes"), loss.classes,
                            other.names.size() == 1 ? "it starts" : "they start");
}

}  // namespace snug::train
