// Runs work in a separate process, so that the operating system's figures about its memory are about that work alone.
#pragma once

#include <functional>
#include <string>

namespace snug {

// Forks, runs `work` in the child and returns what it returned. What the child threw is thrown here as the same kind of failure
// (UserError, DoesNotFit, InternalError); a child that was ended by a signal is an InternalError, or DoesNotFit where the system
// sends that signal for lack of memory. Call it before the process starts threads or a GPU's driver: a child has neither.
std::string run_in_child(const std::function<std::string()>& work);

}  // namespace snug
