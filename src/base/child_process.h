// Work in a process of its own, so that what the operating system says about its memory is about that work alone.
#pragma once

#include <functional>
#include <string>

namespace snug {

// Forks, runs `work` in the child and returns what it returned. What the child threw comes out here as the same kind of failure
// (UserError, DoesNotFit, InternalError); a child that a signal ended is an InternalError, or DoesNotFit where the signal is the
// one that the system sends for lack of memory. Call it before the process starts threads or a GPU's driver: a child has neither.
std::string run_in_child(const std::function<std::string()>& work);

}  // namespace snug
