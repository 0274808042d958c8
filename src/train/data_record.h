// What a run knows about its data: enough to build its model and to normalize as in training without opening the data, and to
// tell whether data that is opened later is still the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/dataset.h"

namespace snug::train {

// One JSON object; reads back equal.
std::string print_data_record(const data::Description& data);
// UserError naming `source` when the text is not such an object.
data::Description parse_data_record(const std::string& text, const std::string& source);

// How `now` differs from what a run was trained on, as a part of a sentence ("it has 3 classes (a, b, c) where the run has 2 (a,
// b)"); empty when it does not. Names are not compared: data may move. Nor are tokenizers: check_tokenizer() does.
std::string describe_difference(const data::Description& trained_on, const data::Description& now);

// UserError when the text that is read `now` has other tokens than those that a run's weights know.
void check_tokenizer(const data::Description& trained_on, const data::TextFacts& now);

// How their classes differ; empty when a label means the same in both. A data set that only numbers its classes matches any with
// as many.
std::string describe_class_difference(const data::Description& trained_on, const data::Description& now);

// The record with which a run resumes: `trained_on`, so that normalization does not change. One example may have been removed
// since: the one that could not be read (`unreadable`, its fingerprint). Any other difference, of tokenizers too, is a UserError
// that says what differs.
data::Description same_data(const data::Description& trained_on, const data::Description& now,
                            const std::optional<std::uint64_t>& unreadable);

}  // namespace snug::train
