// Every node of a plan and every value's place and life, as JSON: what the page of page.h is drawn from. Thousands of nodes make
// columns of numbers, one entry a node or a value, instead of an object for each.
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
// The sections are those of a step and of evaluation, and the one with the fullest moment; `runs` is how often a step runs one.
//
// Values stand in the order in which they begin: one begins `later` nodes after the one before it, the first after node 0, with
// the node that makes it, and stays while `lives` nodes run. It lies at the address `place` and holds `size` bytes: those of the
// largest value that lies there in turn. Where values follow each other in the same bytes, the next begins where the one before
// ends; so the bytes alive while a node runs, in all and by class, are the sum over the states and the values around it.
//
// Everything that comes again is given by index: ops, layers, classes, phases, sizes, and places, the offsets in the arena. Names
// are long and alike: one is the first `prefix` characters of the name before it, and the word that `rest` gives.
nlohmann::ordered_json timeline_json(const Plan& plan);

}  // namespace snug::report
