# The memory report's page, made of the files in src/report/page and compiled into the program: one string before the data, one
# after it. Its Content-Security-Policy names the script and the style by their hashes, so that a browser runs these and nothing
# that may have come in with the data.

set(page_dir ${PROJECT_SOURCE_DIR}/src/report/page)
# In this order: a class stands before what is made of it.
set(page_scripts format dom canvas timeline step_view memory_chart arena_chart details search where ladder plot frontier training main)

# sha256-<base64>, as the policy wants it; CMake has the digest as hexadecimal digits.
function(snug_csp_hash result text)
  string(SHA256 digest "${text}")
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(base64)
  foreach(group RANGE 10) # of three bytes; the last has two, and is filled up with zeros
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${digest}00" ${at} 6 digits)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${digits} >> ${shift}) & 63")
      string(SUBSTRING ${alphabet} ${index} 1 letter)
      string(APPEND base64 ${letter})
    endforeach()
  endforeach()
  string(SUBSTRING ${base64} 0 43 base64)
  set(${result} "sha256-${base64}=" PARENT_SCOPE)
endfunction()

file(READ ${page_dir}/page.html page)
file(READ ${page_dir}/style.css page_style)
# Compilers need not take a literal of more than 65,536 characters: a new one begins with every script.
set(next_piece ")snug_page\",\n    R\"snug_page(")
set(page_script "'use strict';\n(() => {\n")
set(page_script_pieces "${page_script}")
foreach(script IN LISTS page_scripts)
  file(READ ${page_dir}/${script}.js text)
  string(APPEND page_script "${text}")
  string(APPEND page_script_pieces "${next_piece}${text}")
endforeach()
string(APPEND page_script "})();\n")
string(APPEND page_script_pieces "})();\n")
snug_csp_hash(script_hash "${page_script}")
snug_csp_hash(style_hash "${page_style}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@STYLE@" "${page_style}" page "${page}")
string(REPLACE "@SCRIPT@" "${page_script_pieces}" page "${page}")
string(FIND "${page}" "@DATA@" data_at)
math(EXPR after_data "${data_at} + 6")
string(SUBSTRING "${page}" 0 ${data_at} page_before)
string(SUBSTRING "${page}" ${after_data} -1 page_after)

set(page_source ${PROJECT_BINARY_DIR}/report_page.cpp)
file(WRITE ${page_source}.new "// Made by cmake/report_page.cmake from src/report/page.
#include \"report/page_text.h\"

namespace snug::report {

const std::string_view kPageBeforeData = R\"snug_page(${page_before})snug_page\";

static constexpr std::string_view kPieces[] = {
    R\"snug_page(${page_after})snug_page\"};
const std::span<const std::string_view> kPageAfterData = kPieces;

}  // namespace snug::report
")
file(COPY_FILE ${page_source}.new ${page_source} ONLY_IF_DIFFERENT)
target_sources(snug_report PRIVATE ${page_source})
file(GLOB page_files CONFIGURE_DEPENDS ${page_dir}/*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_files})
