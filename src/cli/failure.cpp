#include "cli/failure.h"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>

#include <fmt/format.h>

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

}  // namespace

int report_failure(const std::exception_ptr& failure) {
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
    return say(error.what(), kBadInput);
  } catch (const DoesNotFit& error) {
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
