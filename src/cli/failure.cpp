#include "cli/failure.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include <snug/error.h>
#include <snug/version.h>

namespace snug::cli {

namespace {

int say(std::string message, int code) {
  std::ranges::replace(message, '\n', ' ');  // one sentence, one line
  note("snug: " + message);
  return code;
}

int say_defect(const std::exception& error) {
  return say(fmt::format("internal error: {}; this is a defect in Snug {}, please report it with the command you ran",
                         error.what(), kVersion),
             kInternalError);
}

// What the sentence says, for a program.
nlohmann::ordered_json error_json(const std::exception& error, int code, std::string_view kind) {
  return {{"error", {{"code", code}, {"kind", kind}, {"message", error.what()}}}};
}

nlohmann::ordered_json refusal_json(const DoesNotFit& refusal) {
  nlohmann::ordered_json json = error_json(refusal, kDoesNotFit, "does_not_fit");
  const std::int64_t least = refusal.smallest_budget_bytes();
  if (least > 0) json["error"]["least_bytes"] = least;
  // The same under the names of before there was "error": published fields stay.
  json["fits"] = false;
  json["message"] = refusal.what();
  if (least > 0) json["smallest_budget_bytes"] = least;
  return json;
}

void print(const nlohmann::ordered_json& json) {
  try {
    write_json(json);
  } catch (const ReaderGone&) {  // the exit code says it, too
  } catch (const OutputFailed& error) {
    say(error.what(), kInternalError);
  }
}

}  // namespace

int report_failure(const std::exception_ptr& failure, FailureJson json) {
  const bool prints = json == FailureJson::printed;
  try {
    std::rethrow_exception(failure);
  } catch (const ReaderGone&) {
    return kDone;
  } catch (const Interrupted& stop) {
    const int code = kSignal + stop.signal();
    return *stop.what() == '\0' ? code : say(stop.what(), code);
  } catch (const OutputFailed& error) {
    return say(error.what(), kInternalError);
  } catch (const UserError& error) {
    if (prints) print(error_json(error, kBadInput, "bad_input"));
    return say(error.what(), kBadInput);
  } catch (const DoesNotFit& error) {
    if (prints) print(refusal_json(error));
    return say(error.what(), kDoesNotFit);
  } catch (const std::bad_alloc&) {
    return say("this machine has too little memory to make the plan; try a smaller model", kInternalError);
  } catch (const std::system_error& error) {
    // A thread or a mapping that the operating system does not give.
    if (error.code() == std::errc::resource_unavailable_try_again || error.code() == std::errc::not_enough_memory)
      return say("the operating system gives this process no more memory or threads; allow it more (see 'ulimit -a')",
                 kInternalError);
    return say_defect(error);
  } catch (const std::exception& error) {
    return say_defect(error);
  } catch (...) {
    return say(fmt::format("internal error; this is a defect in Snug {}, please report it with the command you ran", kVersion),
               kInternalError);
  }
}

}  // namespace snug::cli
