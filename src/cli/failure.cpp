#include "cli/failure.h"

#include <cstdio>
#include <new>
#include <string>

#include <fmt/format.h>

#include "cli/output.h"
#include <snug/error.h>
#include <snug/version.h>

namespace snug::cli {

namespace {

int say(std::string message, int code) {
  for (char& c : message) {
    if (c == '\n') c = ' ';  // one sentence, one line
  }
  const std::string line = fmt::format("snug: {}\n", message);
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

}  // namespace

int report_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const ReaderGone&) {
    return kDone;
  } catch (const OutputFailed& error) {
    return say(error.what(), kInternalError);
  } catch (const UserError& error) {
    return say(error.what(), kBadInput);
  } catch (const DoesNotFit& error) {
    return say(error.what(), kDoesNotFit);
  } catch (const std::bad_alloc&) {
    return say("this machine has too little memory to make the plan; try a smaller model", kInternalError);
  } catch (const std::exception& error) {
    return say(fmt::format("internal error: {}; this is a defect in Snug {}, please report it with the command you ran",
                           error.what(), kVersion),
               kInternalError);
  } catch (...) {
    return say(fmt::format("internal error; this is a defect in Snug {}, please report it with the command you ran", kVersion),
               kInternalError);
  }
}

}  // namespace snug::cli
