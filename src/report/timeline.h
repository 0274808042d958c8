// Every node of a plan and every value's place and life, as JSON: what the page of page.h is drawn from. Thousands of nodes make
// columns of numbers, one entry a node or a value, instead of an object for each.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/plan.h"

namespace snug::report {

// {"classes": [...], "phases": [...], "ops": [...], "words": [...], "layers": {"prefix": [...], "rest": [...]},
//  "persistent_bytes": N,
//  "states": {"prefix": [...], "rest": [...], "layer": [...], "class": [...], "bytes": [...], "offset": [...]},
//  "sections": [{"section": "micro", "runs": 10, "placed_by": "...",
//                "nodes": {"op": [...], "layer": [...], "phase": [...]},
//                "values": {"prefix": [...], "rest": [...], "class": [...], "bytes": [...], "offset": [...],
//                           "begin": [...], "end": [...]}}]}
// The sections are those of a step and of evaluation, and the one with the fullest moment; `runs` is how often a step runs one. A
// value holds `bytes`, those of the largest value that lies at its place in turn, while the nodes from `begin` up to but not
// including `end` run; `begin` is the node that makes it. Where values follow each other in the same bytes, the next begins where
// the one before ends; so the bytes alive while a node runs, in all and by class, are the sum over the states and the values
// around it. Names are long and alike: one is the first `prefix` characters of the name before it, and the word that `rest` gives
// by index. Ops, layers, classes and phases, too, are given by index.
nlohmann::ordered_json timeline_json(const Plan& plan);

}  // namespace snug::report
