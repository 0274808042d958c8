#include "report/page.h"

#include "report/page_text.h"
#include <snug/version.h>

namespace snug::report {

using Json = nlohmann::ordered_json;

std::string page(Json report) {
  report["version"] = kVersion;
  // A name may have any encoding: what is not UTF-8 is replaced, not refused.
  const std::string json = report.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string result(kPageBeforeData);
  for (const char c : json) {
    // The data is in a script element, which "</script" or "<!--" would end or change; in JSON's strings, the only place where
    // "<" can occur, it may be escaped so.
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  for (const std::string_view piece : kPageAfterData) result += piece;
  return result;
}

}  // namespace snug::report
