// What a run knows of its data: enough to build its model and to normalize as it was trained without opening the data, and to
// tell whether what is opened later is still the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/dataset.h"

namespace snug::train {

// One JSON object; reads back equal.
std::string print_data_record(const data::Description& data);
// UserError naming `source` when the text is no such object.
data::Description parse_data_record(const std::string& text, const std::string& source);

// How `now` differs from what a run was trained on, as a part of a sentence ("it has 3 classes (a, b, c) where the run has 2 (a,
// b)"); empty when it does not. The name is no part of it: data may move.
std::string describe_difference(const data::Description& trained_on, const data::Description& now);

// How their classes differ; empty when a label means the same in both. A data set that only numbers its classes goes with any
// that has as many.
std::string describe_class_difference(const data::Description& trained_on, const data::Description& now);

// What a run goes on with: the record of `trained_on`, so that nothing is normalized otherwise. One example may have gone since:
// the one that could not be read (`unreadable`, its fingerprint). Any other difference is a UserError that says what differs.
data::Description same_data(const data::Description& trained_on, const data::Description& now,
                            const std::optional<std::uint64_t>& unreadable);

}  // namespace snug::train
