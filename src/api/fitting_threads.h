// Fewer threads than the machine has cores, where a budget has no room for the scratch of so many.
#pragma once

#include <functional>
#include <string>

#include "base/threads.h"
#include "ir/kernel.h"
#include "settings/recipe.h"

namespace snug {

// The recipe's backend, for which `plan` was called last and gave no DoesNotFit. Where the recipe has a budget, allows sums in
// another order and leaves the number of threads to the machine, that is the largest of `cores`, half of them, a quarter, ..., 1
// that fits, and `say` gets one sentence when it is not all; otherwise the only one tried. DoesNotFit where 1 does not fit
// either, with the smaller of the two numbers.
Backend open_fitting_backend(const settings::Recipe& recipe, const std::function<void(const Backend&)>& plan,
                             const std::function<void(const std::string&)>& say, int cores = thread_count(0));

}  // namespace snug
