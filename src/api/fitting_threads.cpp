#include "api/fitting_threads.h"

#include <fmt/format.h>

#include "api/prepare.h"
#include <snug/error.h>

namespace snug {

namespace {

Backend open_with(settings::Recipe recipe, int threads) {
  recipe.threads = threads;
  return open_backend(recipe);
}

}  // namespace

Backend open_fitting_backend(const settings::Recipe& recipe, const std::function<void(const Backend&)>& plan,
                             const std::function<void(const std::string&)>& say, int cores) {
  const bool may_choose = recipe.budget_bytes && recipe.threads == 0 && recipe.device == "cpu" && cores > 1 &&
                          parse_allowance(recipe.allow).has(Exactness::reassociated);
  const int most = recipe.threads == 0 ? cores : static_cast<int>(recipe.threads);
  Backend backend = open_with(recipe, most);
  try {
    plan(backend);
    return backend;
  } catch (const DoesNotFit& with_all) {
    if (!may_choose) throw;
    // One thread first: what does not fit with it fits with none, and a refusal need not try them all.
    try {
      backend = open_with(recipe, 1);
      plan(backend);
    } catch (const DoesNotFit& with_one) {
      if (with_one.smallest_budget_bytes() < with_all.smallest_budget_bytes()) throw;
      throw with_all;
    }
  }
  const auto tell = [&](int threads) {
    say(fmt::format("{} thread{} instead of {}: the budget has no room for the kernels' scratch on more", threads,
                    threads == 1 ? "" : "s", cores));
  };
  for (int threads = cores / 2; threads > 1; threads /= 2) {
    backend = open_with(recipe, threads);
    try {
      plan(backend);
      tell(threads);
      return backend;
    } catch (const DoesNotFit&) {
      continue;
    }
  }
  backend = open_with(recipe, 1);
  plan(backend);
  tell(1);
  return backend;
}

}  // namespace snug
