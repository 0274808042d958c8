// Any bytes as a run's metrics: columns that are all as long as there are steps, and a page whose data reads back; never anything
// else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "report/page.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), count);
  const nlohmann::ordered_json training = snug::report::training_json(text, 4);
  for (const auto& column : training.at("columns")) {
    if (column.size() != training.at("columns").at("step").size()) std::abort();
  }
  const std::string html = snug::report::page({{"training", training}});
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t from = html.find(begin) + begin.size();
  if (!nlohmann::ordered_json::accept(html.substr(from, html.find("</script>", from) - from))) std::abort();
  return 0;
}
