// What a test asks of a message: the kind of error and the facts it names. The sentences themselves are asserted in one place,
// tests/cli/messages.txt.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace snug::support {

// The message of the Error that `f` throws; another text when it throws none. Another kind of error fails the test.
template <typename Error, typename F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// A fact is named as a whole word or number: "1" is not in "1.5", "10" or "-1", and "conv2d" is not in "conv2d_grad_input".
inline bool names_fact(std::string_view message, std::string_view fact) {
  const auto is = [](int (*kind)(int), char c) { return kind(static_cast<unsigned char>(c)) != 0; };
  const auto at = [&](std::size_t i) { return i < message.size() ? message[i] : ' '; };
  const auto goes_on = [&](char c) { return is(std::isalnum, c) || c == '_'; };
  for (std::size_t begin = message.find(fact); begin != std::string_view::npos; begin = message.find(fact, begin + 1)) {
    const char before = begin == 0 ? ' ' : message[begin - 1];
    const std::size_t end = begin + fact.size();
    const char after = at(end);
    const bool begins = !is(std::isalnum, fact.front()) ||
                        (!goes_on(before) && !(is(std::isdigit, fact.front()) && (before == '-' || before == '.')));
    const bool ends =
        !is(std::isalnum, fact.back()) ||
        (!goes_on(after) && !(is(std::isdigit, fact.back()) && (after == '.' || after == ',') && is(std::isdigit, at(end + 1))));
    if (begins && ends) return true;
  }
  return false;
}

// Whether `message` names every fact: the flag, the file, the tensor, the number, and the word that tells this refusal from
// others.
inline ::testing::AssertionResult mentions(std::string_view message, const std::vector<std::string>& facts) {
  if (facts.empty()) return ::testing::AssertionFailure() << "no fact is asked for";
  for (const std::string& fact : facts) {
    if (fact.empty() || !names_fact(message, fact))
      return ::testing::AssertionFailure() << "'" << fact << "' is not in: " << message;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace snug::support
