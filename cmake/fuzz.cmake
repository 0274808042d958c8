# Fuzzers: tests/fuzz/<name>_fuzz.cpp becomes build/fuzz/fuzz/<name>_fuzz, with libFuzzer and the sanitizers, and so does all that it uses.
#   cmake -G Ninja -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSNUG_BUILD_FUZZERS=ON
#   cmake --build build/fuzz --target image_fuzz && build/fuzz/fuzz/image_fuzz -max_total_time=120
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "SNUG_BUILD_FUZZERS needs clang: configure with -DCMAKE_CXX_COMPILER=clang++")
endif()
add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
add_link_options(-fsanitize=address,undefined)

# snug_fuzzer(<name> DEPENDS <folder of src>...), after the folders.
function(snug_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS")
  snug_closure(targets ${arg_DEPENDS})
  add_executable(${name}_fuzz ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cpp)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_include_directories(${name}_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name}_fuzz PRIVATE snug_options ${targets})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
endfunction()
