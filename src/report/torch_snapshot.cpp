#include "report/torch_snapshot.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/op.h"

namespace snug::report {

namespace {

// Python's pickle, protocol 2, as far as dictionaries, lists, texts and whole numbers go. Opcodes as in Python's pickletools.
class Pickle {
 public:
  Pickle() : bytes_("\x80\x02") {}

  void text(std::string_view value) {
    bytes_ += 'X';  // BINUNICODE: four bytes of length, UTF-8
    little_endian(value.size(), 4);
    bytes_ += value;
  }
  void number(std::int64_t value) {
    bytes_ += "\x8a\x08";  // LONG1 of eight bytes
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
  void begin_dict() { bytes_ += "}("; }  // EMPTY_DICT, MARK
  void end_dict() { bytes_ += 'u'; }     // SETITEMS
  void begin_list() { bytes_ += "]("; }  // EMPTY_LIST, MARK
  void end_list() { bytes_ += 'e'; }     // APPENDS
  // Readers put a list's entries on a stack: so not all at once.
  void more() { bytes_ += "e("; }

  std::string take() && { return std::move(bytes_) + '.'; }

 private:
  void little_endian(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>((value >> (8U * static_cast<unsigned>(i))) & 0xFFU);
  }

  std::string bytes_;
};

struct Frame {
  std::string value;
  int node = 0;
  std::string made_by;
};

struct Event {
  bool alloc = true;
  Bytes offset;
  Bytes size;
  std::int64_t time = 0;  // in nodes since the step began
  std::vector<Frame> frames;
};

void put(Pickle& out, const std::vector<Frame>& frames) {
  out.text("frames");
  out.begin_list();
  for (const Frame& frame : frames) {
    out.begin_dict();
    out.text("filename");
    out.text(frame.value);
    out.text("line");
    out.number(frame.node);
    out.text("name");
    out.text(frame.made_by);
    out.end_dict();
  }
  out.end_list();
}

void put(Pickle& out, std::string_view key, std::int64_t value) {
  out.text(key);
  out.number(value);
}

void put(Pickle& out, const Event& event) {
  out.begin_dict();
  out.text("action");
  out.text(event.alloc ? "alloc" : "free_completed");
  put(out, "addr", event.offset.count());
  put(out, "size", event.size.count());
  put(out, "stream", 0);
  put(out, "time_us", event.time);
  put(out, event.frames);
  out.end_dict();
}

std::vector<Frame> frames_of(const Section& section, const Buffer& buffer) {
  std::vector<Frame> frames;
  for (const Tenant& tenant : buffer.tenants) {
    const Node& node = section.nodes[static_cast<std::size_t>(tenant.from)];
    frames.push_back({.value = section.value(tenant.value).name,
                      .node = tenant.from,
                      .made_by = fmt::format("{} {} {}", name_of(node.phase), node.op->name, node.layer)});
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::vector<Event> events_of(const Plan& plan) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < plan.program.states.size(); ++i) {
    const State& state = plan.program.states[i];
    if (state.space != MemorySpace::device) continue;
    events.push_back({.offset = plan.state_offsets[i],
                      .size = state.type.bytes(),
                      .frames = {{.value = state.name, .made_by = std::string(name_of(state.role))}}});
  }
  std::int64_t time = 0;
  for (const SectionKind kind : {SectionKind::micro, SectionKind::update}) {
    for (std::size_t s = 0; s < plan.program.sections.size(); ++s) {
      const Section& section = plan.program.sections[s];
      if (section.kind != kind) continue;
      const SectionPlan& placed = plan.sections[s];
      const std::size_t first = events.size();
      for (const std::size_t b : buffers_in(placed.liveness, MemorySpace::device)) {
        const Buffer& buffer = placed.liveness.buffers[b];
        std::vector<Frame> frames = frames_of(section, buffer);
        for (const bool alloc : {true, false}) {
          events.push_back({.alloc = alloc,
                            .offset = placed.offsets[b],
                            .size = buffer.size,
                            .time = time + (alloc ? buffer.begin : buffer.end),
                            .frames = frames});
        }
      }
      // What ends before a node is freed before what begins with it is allocated.
      std::stable_sort(events.begin() + static_cast<std::ptrdiff_t>(first), events.end(),
                       [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : !a.alloc && b.alloc; });
      time += static_cast<std::int64_t>(section.nodes.size());
    }
  }
  return events;
}

// The arena at the end of a step: states, and free bytes between and above them.
void put_segment(Pickle& out, const Plan& plan) {
  Bytes used;
  for (const State& state : plan.program.states) {
    if (state.space == MemorySpace::device) used += state.type.bytes();
  }
  out.begin_dict();
  put(out, "device", 0);
  put(out, "address", 0);
  put(out, "total_size", plan.planned_peak_bytes.count());
  put(out, "allocated_size", used.count());
  put(out, "active_size", used.count());
  put(out, "requested_size", used.count());
  put(out, "stream", 0);
  out.text("segment_type");
  out.text("large");
  out.text("blocks");
  out.begin_list();
  Bytes at;
  const auto put_block = [&](Bytes offset, Bytes size, std::string_view state, const std::vector<Frame>& frames) {
    out.begin_dict();
    put(out, "address", offset.count());
    put(out, "size", size.count());
    put(out, "requested_size", size.count());
    out.text("state");
    out.text(state);
    put(out, frames);
    out.end_dict();
    out.more();
  };
  for (std::size_t i = 0; i < plan.program.states.size(); ++i) {
    const State& state = plan.program.states[i];
    if (state.space != MemorySpace::device) continue;
    const Bytes offset = plan.state_offsets[i];
    if (offset > at) put_block(at, offset - at, "inactive", {});
    put_block(offset, state.type.bytes(), "active_allocated",
              {{.value = state.name, .made_by = std::string(name_of(state.role))}});
    at = offset + state.type.bytes();
  }
  if (plan.planned_peak_bytes > at) put_block(at, plan.planned_peak_bytes - at, "inactive", {});
  out.end_list();
  out.end_dict();
}

}  // namespace

std::string torch_snapshot(const Plan& plan) {
  Pickle out;
  out.begin_dict();
  out.text("segments");
  out.begin_list();
  put_segment(out, plan);
  out.end_list();
  out.text("device_traces");
  out.begin_list();
  out.begin_list();
  for (const Event& event : events_of(plan)) {
    put(out, event);
    out.more();
  }
  out.end_list();
  out.end_list();
  out.end_dict();
  return std::move(out).take();
}

}  // namespace snug::report
