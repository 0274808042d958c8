// Every node of a plan and every value's place and lifetime, as JSON, from which the page of page.h is drawn. For thousands of
// nodes there are columns of numbers, one entry per node or value, instead of an object for each.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/plan.h"

namespace snug::report {

// {"classes": [...], "phases": [...], "ops": [...], "words": [...], "sizes": [...], "places": [...],
//  "layers": {"prefix": [...], "rest": [...]}, "persistent_bytes": N,
//  "states": {"prefix": [...], "rest": [...], "layer": [...], "class": [...], "size": [...], "place": [...]},
//  "sections": [{"section": "micro", "runs": 10, "placed_by": "...",
//                "nodes": {"op": [...], "layer": [...], "phase": [...]},
//                "values": {"prefix": [...], "rest": [...], "class": [...], "size": [...], "place": [...],
//                           "later": [...], "lives": [...]}}]}
// The sections are those of a step and of evaluation, and the one with the peak; `runs` is how often a step runs one.
//
// Values are listed in the order in which they begin: each begins, with the node that makes it, `later` nodes after the one
// before it (the first: after node 0), and is alive while `lives` nodes run. It lies at the address `place` and holds `size`
// bytes: those of the largest value in its buffer. Where values share a buffer, each begins where the one before ends; so the
// bytes alive while a node runs, in total and by class, are the sum over the states and the values alive then.
//
// Everything that repeats is given by index: ops, layers, classes, phases, sizes, and places, the offsets in the arena. Names are
// long and similar: each is the first `prefix` characters of the name before it, followed by the word with index `rest`.
nlohmann::ordered_json timeline_json(const Plan& plan);

}  // namespace snug::report
