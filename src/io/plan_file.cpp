#include "io/plan_file.h"

#include <algorithm>
#include <charconv>
#include <span>

#include <fmt/ranges.h>

#include "base/checksum.h"
#include "base/error.h"
#include "io/file_io.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"

namespace snug::io {

namespace {

constexpr std::string_view kPlacement = "\nplacement ";
// Far above any arena, and low enough that sums of two do not overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60U;
constexpr std::uint64_t kMostPlanFileBytes = 1'000'000'000;

// The words of the placement, one by one.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  // The next word on this line; empty at the line's end.
  std::string_view next() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    const std::size_t end = std::min(rest_.find_first_of(" \n"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  // The rest of this line.
  std::string_view rest_of_line() {
    if (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    const std::string_view line = rest_.substr(0, std::min(rest_.find('\n'), rest_.size()));
    rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
    return line;
  }

  void expect(std::string_view wanted) {
    if (const std::string_view word = next(); word != wanted)
      throw_user_error("the plan's placement has '{}' where '{}' belongs", word.substr(0, 40), wanted);
  }

  void end_line() {
    expect("");
    if (!rest_.empty()) rest_.remove_prefix(1);
  }

  Bytes bytes() { return Bytes(number<std::int64_t>(0, kMostBytes, "a number of bytes")); }

  template <typename T>
  T number(T least, T most, std::string_view what) {
    const std::string_view word = next();
    T value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size() || !(value >= least && value <= most))
      throw_user_error("the plan's placement has '{}' where {} belongs", word.substr(0, 40), what);
    return value;
  }

  std::vector<Bytes> offsets(std::string_view of, std::size_t count) {
    expect("place");
    expect(of);
    return offsets(count);
  }
  std::vector<Bytes> offsets(SectionKind of, std::size_t count) {
    expect("place");
    if (const std::string_view word = next().substr(0, 40); parse_section_kind(word) != of)
      throw_user_error("the plan's placement has '{}' where '{}' belongs", word, name_of(of));
    return offsets(count);
  }
  std::vector<Bytes> offsets(std::size_t count) {
    std::vector<Bytes> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(bytes());
    end_line();
    return result;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// UserError unless all sizes together, and with them every sum of offsets, can be counted.
void check_sizes(const Program& program) {
  Bytes total;
  const auto count = [&](const Type& type) {
    if (type.bytes().count() > kMostBytes || (total += type.bytes()).count() > kMostBytes)
      throw_user_error("the values of '{}' together take more than 2^60 bytes", program.name);
  };
  for (const State& state : program.states) count(state.type);
  for (const Section& section : program.sections) {
    for (const Value& value : section.values) count(value.type);
  }
}

// Earlier versions wrote the form of the model alone, as in "form precision bf16 nonzero 0.5 momentum_bits 32".
Methods parse_form(Words& words) {
  Methods methods;
  words.expect("precision");
  const std::string_view precision = words.next();
  methods.precision = parse_precision(precision);
  if (!methods.precision) throw_user_error("the plan has the precision '{}'", precision.substr(0, 40));
  words.expect("nonzero");
  if (const double nonzero = words.number(0.0, 1.0, "a share of the weights"); nonzero < 1) methods.nonzero = nonzero;
  words.expect("momentum_bits");
  if (const auto bits = words.number<std::int64_t>(8, 32, "a number of bits"); bits != 32) methods.momentum_bits = bits;
  words.end_line();
  return methods;
}

// For a plan that does not list all of its methods: those that its program shows. It shows whether backward recomputes, but not
// by which strategy.
void read_methods_off(const Program& program, Methods& methods) {
  methods.microbatch = program.microbatch;
  const Section* micro = program.find_section(SectionKind::micro);
  if (micro == nullptr) return;
  bool recomputes = false;
  for (const Node& node : micro->nodes) {
    if (node.op->packing == Packing::packs) methods.compress_bits = node.attributes.integer("bits");
    if (node.op->stands_for != nullptr) methods.drop_gradients = true;
    if (node.phase == Phase::update) methods.fuse_update = true;
    // Unpacking is not recomputation.
    recomputes |= node.phase == Phase::recompute && node.op->packing != Packing::unpacks && !node.op->is_view;
  }
  if (!recomputes) methods.checkpoint = CheckpointStrategy{};
}

// Heights, bounds and sizes of one memory space's arena, which follow from the offsets in it.
void measure_arena(MemorySpace space, Plan& plan) {
  ArenaPlan& arena = plan.in(space);
  Bytes top;
  for (std::size_t i = 0; i < plan.program.states.size(); ++i) {
    const State& state = plan.program.states[i];
    if (state.space == space) top = std::max(top, plan.state_offsets[i] + state.type.bytes() + plan.red_zone);
  }
  arena.planned_peak_bytes = arena.bound_bytes = top;
  for (SectionPlan& section : plan.sections) {
    const std::vector<std::size_t> buffers = buffers_in(section.liveness, space);
    if (buffers.empty()) continue;
    RegionPlan& region = section.in(space);
    for (const std::size_t i : buffers) {
      const Bytes end = section.offsets[i] + section.liveness.buffers[i].size + plan.red_zone;
      region.height = std::max(region.height, end - arena.persistent_bytes);
      arena.planned_peak_bytes = std::max(arena.planned_peak_bytes, end);
    }
    region.method = "saved";
    region.bound = placement::lower_bound(placement_problem(section.liveness, space, plan.red_zone));
    arena.bound_bytes = std::max(arena.bound_bytes, arena.persistent_bytes + region.bound);
  }
}

}  // namespace

std::string print_plan(const Plan& plan) {
  std::string text = print(plan.program);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t places = plan.state_offsets.size();
  for (const SectionPlan& section : plan.sections) places += section.offsets.size();
  text.reserve(text.size() + places * 16 + 512);  // growing would double it
  text += fmt::format("{}red_zone {} persistent {}", kPlacement, plan.red_zone.count(), plan.persistent_bytes.count());
  if (plan.host.persistent_bytes > Bytes(0)) text += fmt::format(" host_persistent {}", plan.host.persistent_bytes.count());
  text += '\n';
  const auto line = [&](std::string_view of, const std::vector<Bytes>& offsets) {
    text += fmt::format("place {}", of);
    for (const Bytes offset : offsets) text += fmt::format(" {}", offset.count());
    text += '\n';
  };
  line("states", plan.state_offsets);
  for (std::size_t i = 0; i < plan.sections.size(); ++i) line(name_of(plan.program.sections[i].kind), plan.sections[i].offsets);
  if (plan.methods != Methods()) text += fmt::format("methods {}\n", print_methods(plan.methods));
  if (!plan.made_for.empty()) text += fmt::format("made_for {}\n", plan.made_for);
  return text;
}

Plan parse_plan(std::string_view text) {
  const std::size_t split = text.rfind(kPlacement);
  if (split == std::string_view::npos) throw UserError("the plan has no placement; it may be cut short");
  Plan plan;
  plan.program = parse_program(text.substr(0, split + 1), ops::find);
  if (const auto defect = find_defect(plan.program)) {
    throw_user_error("the plan's program is not sound: {}", defect->substr(0, defect->find('\n')));
  }
  check_sizes(plan.program);

  Words words(text.substr(split + kPlacement.size()));
  words.expect("red_zone");
  plan.red_zone = words.bytes();
  words.expect("persistent");
  plan.persistent_bytes = words.bytes();
  std::string_view word = words.next();
  if (word == "host_persistent") {
    plan.host.persistent_bytes = words.bytes();
    word = words.next();
  }
  if (!word.empty()) throw_user_error("the plan's placement has '{}' where its first line ends", word.substr(0, 40));
  words.end_line();
  if (plan.red_zone.count() % kAlignment.count() != 0 || plan.red_zone.count() > (1 << 20))
    throw_user_error("the plan has red zones of {} bytes", plan.red_zone.count());
  plan.state_offsets = words.offsets("states", plan.program.states.size());
  for (const Section& section : plan.program.sections) {
    SectionPlan placed;
    placed.liveness = liveness(section);
    placed.offsets = words.offsets(section.kind, placed.liveness.buffers.size());
    plan.sections.push_back(std::move(placed));
  }
  for (const MemorySpace space : kMemorySpaces) measure_arena(space, plan);
  word = words.next();
  if (word == "methods") {
    plan.methods = parse_methods(words.rest_of_line());
    word = words.next();
  } else {
    if (word == "form") {
      plan.methods = parse_form(words);
      word = words.next();
    }
    read_methods_off(plan.program, plan.methods);
  }
  if (word == "made_for") {
    plan.made_for = words.rest_of_line();
    word = words.next();
  }
  if (!word.empty() || !words.at_end()) throw_user_error("the plan has '{}' after its placement", word.substr(0, 40));
  if (const auto violation = find_violation(plan)) throw_user_error("the plan's placement is not valid: {}", *violation);
  return plan;
}

namespace {

constexpr std::string_view kChecksum = "checksum ";

std::string checksum_line(std::string_view text) {
  Crc64 checksum;
  checksum.update(std::as_bytes(std::span(text)));
  return fmt::format("{}{:016x}\n", kChecksum, checksum.value());
}

Plan read_plan(const std::filesystem::path& path, bool needs_checksum) {
  const std::string text = read_text_file(path, kMostPlanFileBytes);
  try {
    std::string_view body = text;
    const std::size_t last_line = text.rfind('\n', text.size() < 2 ? 0 : text.size() - 2) + 1;
    if (std::string_view(text).substr(last_line).starts_with(kChecksum)) {
      body = body.substr(0, last_line);
      if (checksum_line(body) != std::string_view(text).substr(last_line))
        throw UserError("its checksum is not that of its contents, so it was edited or damaged; plan again");
    } else if (needs_checksum) {
      throw UserError("it does not end with a checksum, so it was cut short or made by an earlier version; plan again");
    }
    return parse_plan(body);
  } catch (const UserError& error) {
    throw_user_error("'{}' is not a plan that 'snug plan --save' made, or is damaged: {}", path.string(), error.what());
  }
}

}  // namespace

void write_plan_file(const std::filesystem::path& path, const Plan& plan) {
  std::string text = print_plan(plan);
  text += checksum_line(text);
  write_text_file(path, text);
}

Plan read_plan_file(const std::filesystem::path& path) { return read_plan(path, true); }

Plan read_plan_file_of_run(const std::filesystem::path& path) { return read_plan(path, false); }

namespace {

// What two programs of one model have in common however their memory is planned, one line each: every state except gradients and
// copies that kernels keep, the forward pass without other forms of its values, and the updates, wherever they run.
std::vector<std::string> comparable_lines(const Program& program) {
  std::vector<std::string> lines;
  for (const State& state : program.states) {
    if (state.role == Role::workspace || state.role == Role::gradient) continue;
    lines.push_back(
        fmt::format("{} {} '{}'{}", name_of(state.role), to_string(state.type), state.name, state.trainable ? " trained" : ""));
  }
  for (const Section& section : program.sections) {
    if (section.kind != SectionKind::micro && section.kind != SectionKind::update) continue;
    for (const Node& node : section.nodes) {
      const bool decays = node.op->stands_for != nullptr;  // together with its early step, what is otherwise one update
      if (node.phase != Phase::forward && node.phase != Phase::update && !decays) continue;
      if (node.op->prepares_data) continue;  // the run's own, see adopt()
      if (node.op->is_auxiliary) continue;
      Attributes attributes = node.attributes;
      if (decays) attributes.set("nesterov", std::int64_t{0});
      std::string line = fmt::format("{} of '{}'", decays ? node.op->stands_for->name : node.op->name,
                                     decays ? section.value(node.inputs[1]).name : node.layer);
      for (const auto& [name, value] : attributes.entries()) {
        line += fmt::format(" {}=", name);
        std::visit([&](const auto& constant) { line += fmt::format("{}", constant); }, value);
      }
      lines.push_back(std::move(line));
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The attributes of a section's image input: in training those of augmented images, if there are any.
const Attributes* images_of(const Program& program, SectionKind kind) {
  const Section* section = program.find_section(kind);
  const Attributes* found = nullptr;
  if (section == nullptr) return nullptr;
  for (const Node& node : section->nodes) {
    if (!node.op->prepares_data) continue;
    if (found == nullptr || (kind == SectionKind::micro && node.attributes.integer_or("augment", 0) != 0))
      found = &node.attributes;
  }
  return found;
}

}  // namespace

void adopt(Plan& plan, const Program& model) {
  Program& program = plan.program;
  if (program.name != model.name) throw_user_error("the plan is for '{}', not for '{}'", program.name, model.name);
  if (program.batch != model.batch) throw_user_error("the plan is for batches of {}, not of {}", program.batch, model.batch);
  const std::vector<std::string> have = comparable_lines(program);
  const std::vector<std::string> want = comparable_lines(model);
  const auto [in_plan, in_model] = std::mismatch(have.begin(), have.end(), want.begin(), want.end());
  if (in_plan != have.end() || in_model != want.end()) {
    throw_user_error("the plan is for another '{}': it has {} where this run has {}; plan again with the same flags", model.name,
                     in_plan == have.end() ? "nothing" : *in_plan, in_model == want.end() ? "nothing" : *in_model);
  }
  for (Section& section : program.sections) {
    const Attributes* images = images_of(model, section.kind);
    for (Node& node : section.nodes) {
      if (node.op->prepares_data && images != nullptr) node.attributes = *images;
    }
  }
}

std::optional<std::string> find_kernel_misfit(const Plan& plan, const Backend& backend) {
  for (const Section& section : plan.program.sections) {
    for (const Node& node : section.nodes) {
      const KernelDef* kernel = backend.find(node.kernel);
      if (kernel == nullptr || kernel->op != node.op->name)
        return fmt::format("the {} backend has no kernel '{}' for {}", backend.name, node.kernel, node.op->name);
      const NodeTypes types = types_of(section, node);
      const KernelMatch match = kernel->answer(backend.query(node, types));
      if (const auto* refusal = std::get_if<Refuse>(&match))
        return fmt::format("kernel '{}' does not take a node of the plan ({})", node.kernel, refusal->reason);
      const Bytes given = node.workspace.valid() ? section.value(node.workspace).type.bytes() : Bytes(0);
      if (const Bytes wanted = std::get<Accept>(match).workspace; wanted > given) {
        return fmt::format("kernel '{}' needs {} bytes of workspace where the plan has {}", node.kernel, wanted.count(),
                           given.count());
      }
    }
  }
  return std::nullopt;
}

void check_kernels(const Plan& plan, const Backend& backend) {
  if (const auto misfit = find_kernel_misfit(plan, backend))
    throw_user_error("{}: the plan was made for another backend, machine or library; plan again, and start from weights",
                     *misfit);
}

}  // namespace snug::io
