# How a folder becomes targets. Sources are found by globbing, so adding an op, a pass or a test is adding a file.
#
# Each folder of src/ is an object library snug_<folder>. A program links the objects of the folders it names and of all folders
# below them, and nothing else: code that reaches upwards fails to link in that folder's tests.

add_library(snug_options INTERFACE)
target_compile_features(snug_options INTERFACE cxx_std_20)
target_compile_options(
  snug_options
  INTERFACE # Results must not depend on whether the compiler fuses a multiply and an add.
            $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
            $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion>
            $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Woverloaded-virtual>
            # A designated initializer leaves members out on purpose; C++ initializes them all the same.
            $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>
            # GCC 12 sees overlaps in the standard library's string concatenation that are not there (GCC bug 105651).
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
            # ... and members of a std::variant's inactive alternatives as uninitialized when it optimizes (GCC bug 80635).
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON) # cmake --compile-no-warning-as-error turns it off
endif()

# What `make build` builds: the library, the program and the examples, without the tests.
add_custom_target(snug_products ALL)

# The object libraries of the given folders and of everything below them.
function(snug_closure result)
  set(targets)
  foreach(folder IN LISTS ARGN)
    get_property(below GLOBAL PROPERTY snug_closure_${folder})
    list(APPEND targets ${below})
  endforeach()
  list(REMOVE_DUPLICATES targets)
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

# snug_library(<folder> [DEPENDS <folder>...] [LINK <library>...] [EXCLUDE <regex>])
function(snug_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCLUDE" "DEPENDS;LINK")
  set_property(GLOBAL APPEND PROPERTY snug_folders ${folder})
  snug_closure(targets ${arg_DEPENDS})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp)
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  if(sources)
    add_library(snug_${folder} OBJECT ${sources})
    target_include_directories(snug_${folder} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                                     ${PROJECT_BINARY_DIR}/include)
    target_link_libraries(snug_${folder} PUBLIC snug_options ${targets} ${arg_LINK})
    list(APPEND targets snug_${folder})
  endif()
  set_property(GLOBAL PROPERTY snug_closure_${folder} ${targets})
endfunction()

# snug_installed_library(FOLDER <topmost folder> LINK <library>...): snug::snug, here and for whoever installs it.
# What stands in LINK must stand in snugConfig.cmake.in too.
function(snug_installed_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "FOLDER" "LINK")
  snug_closure(targets ${arg_FOLDER})
  list(TRANSFORM targets REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_library(snug_archive STATIC ${objects})
  add_library(snug::snug ALIAS snug_archive)
  set_target_properties(snug_archive PROPERTIES OUTPUT_NAME snug EXPORT_NAME snug LINKER_LANGUAGE CXX)
  target_compile_features(snug_archive PUBLIC cxx_std_20)
  target_include_directories(
    snug_archive PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(snug_archive PRIVATE ${arg_LINK})
  add_dependencies(snug_products snug_archive)

  include(CMakePackageConfigHelpers)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/snug)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/snugConfig.cmake.in ${PROJECT_BINARY_DIR}/snugConfig.cmake
                                INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/snugConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(TARGETS snug_archive EXPORT snugTargets)
  install(EXPORT snugTargets NAMESPACE snug:: DESTINATION ${package_dir})
  install(FILES ${PROJECT_BINARY_DIR}/snugConfig.cmake ${PROJECT_BINARY_DIR}/snugConfigVersion.cmake
                ${PROJECT_SOURCE_DIR}/cmake/find_onednn.cmake DESTINATION ${package_dir})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/snug ${PROJECT_BINARY_DIR}/include/snug TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
endfunction()

# The command, at the top of the build folder; its manual page and completion are what it prints itself.
function(snug_program)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
    return()
  endif()
  snug_closure(targets cli)
  add_executable(snug ${PROJECT_SOURCE_DIR}/src/cli/main.cpp)
  set_target_properties(snug PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(snug PRIVATE ${targets} CLI11::CLI11)
  target_include_directories(snug PRIVATE ${PROJECT_SOURCE_DIR}/src)
  add_dependencies(snug_products snug)
  install(TARGETS snug)

  set(printed ${PROJECT_BINARY_DIR}/printed)
  file(MAKE_DIRECTORY ${printed})
  add_custom_command(
    OUTPUT ${printed}/snug.1 ${printed}/snug ${printed}/_snug
    COMMAND snug --man > ${printed}/snug.1
    COMMAND snug --completion bash > ${printed}/snug
    COMMAND snug --completion zsh > ${printed}/_snug
    DEPENDS snug
    VERBATIM)
  add_custom_target(snug_printed ALL DEPENDS ${printed}/snug.1 ${printed}/snug ${printed}/_snug)
  add_dependencies(snug_products snug_printed)
  install(FILES ${printed}/snug.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${printed}/snug DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${printed}/_snug DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endfunction()

# Each examples/<name>.cpp is a program that sees only the installed headers; the test example.<name> runs it.
function(snug_examples)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    add_executable(example_${name} ${source})
    set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    target_link_libraries(example_${name} PRIVATE snug::snug snug_options)
    add_dependencies(snug_products example_${name})
    if(SNUG_BUILD_TESTS)
      add_test(NAME example.${name} COMMAND example_${name})
      set_tests_properties(example.${name} PROPERTIES TIMEOUT 600 LABELS example ENVIRONMENT OMP_WAIT_POLICY=passive)
    endif()
  endforeach()
endfunction()

# Of bench/, step_bench (whole training steps) and parity (a pass of a language model with given weights) have command lines of
# their own.
function(snug_command_benches)
  snug_closure(targets api)
  foreach(name IN ITEMS step_bench parity)
    add_executable(${name} ${PROJECT_SOURCE_DIR}/bench/${name}.cpp)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    target_link_libraries(${name} PRIVATE ${targets} CLI11::CLI11 nlohmann_json::nlohmann_json)
  endforeach()
endfunction()

# bench/driver_bytes.cpp asks the driver of a GPU what it takes; only with the CUDA backend.
function(snug_driver_bytes)
  snug_closure(targets api)
  add_executable(driver_bytes ${PROJECT_SOURCE_DIR}/bench/driver_bytes.cpp ${PROJECT_SOURCE_DIR}/bench/driver_bytes/kernels.cu
                              ${PROJECT_SOURCE_DIR}/bench/driver_bytes/libraries.cpp)
  set_target_properties(driver_bytes PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_include_directories(driver_bytes PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  target_include_directories(driver_bytes SYSTEM PRIVATE ${SNUG_CUDNN_INCLUDE_DIR})
  target_link_libraries(driver_bytes PRIVATE ${targets} CLI11::CLI11 nlohmann_json::nlohmann_json ${SNUG_CUDNN_LIBRARY} CUDA::cublasLt
                                             CUDA::cudart_static)
endfunction()

# Every other bench/<name>.cpp, with what lies in bench/<name>/, is a Google Benchmark program <name>; it may look inside.
function(snug_benchmarks)
  find_package(benchmark REQUIRED)
  snug_closure(targets api)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/(step_bench|parity|driver_bytes).cpp$")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    file(GLOB parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/${name}/*.cpp)
    add_executable(${name} ${source} ${parts})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
    target_link_libraries(${name} PRIVATE ${targets} benchmark::benchmark_main CLI11::CLI11)
  endforeach()
endfunction()

# What every test includes, read once for all of them: half of a test file's time in the compiler goes there.
function(snug_test_headers)
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cpp "")
  add_library(snug_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cpp)
  target_compile_options(snug_test_headers PRIVATE $<$<CONFIG:Release>:-O1;-g0>)
  target_compile_options(snug_test_headers PRIVATE -fPIE)
  target_link_libraries(snug_test_headers PRIVATE snug_options GTest::gtest fmt::fmt OpenMP::OpenMP_CXX)
  target_precompile_headers(snug_test_headers PRIVATE <gtest/gtest.h> <fmt/format.h> <algorithm> <functional> <map> <string> <vector>)
endfunction()

# A plugin in the place of libsnug_cuda.so, for tests of the command without a GPU.
function(snug_fake_cuda_plugin)
  snug_closure(targets backends)
  set(exports ${PROJECT_SOURCE_DIR}/src/backends/cuda/exports.map)
  add_library(snug_fake_cuda MODULE ${PROJECT_SOURCE_DIR}/tests/fake_cuda/fake_cuda_plugin.cpp)
  set_target_properties(snug_fake_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests LINK_DEPENDS ${exports})
  target_include_directories(snug_fake_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_options(snug_fake_cuda PRIVATE -Wl,--version-script=${exports})
  target_link_libraries(snug_fake_cuda PRIVATE snug_options ${targets})
endfunction()

# snug_test(<folder> DEPENDS <folder of src>...): one GoogleTest program from tests/<folder>, all .cpp files below it.
# Tests get SNUG_TEST_SOURCE_DIR (tests/) for their data; those that depend on cli also SNUG_PROGRAM, the path of the command.
function(snug_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  snug_closure(targets ${arg_DEPENDS})
  set(target snug_${folder}_test)
  add_executable(${target} ${sources})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE SNUG_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE snug_options ${targets} GTest::gtest_main)
  # The library is what is optimized; tests wait for the compiler longer than for themselves.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1;-g0>)
  target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX) # its flag must be the one of the headers below
  target_precompile_headers(${target} REUSE_FROM snug_test_headers)
  if(TARGET snug AND cli IN_LIST arg_DEPENDS)
    target_compile_definitions(${target} PRIVATE SNUG_PROGRAM="$<TARGET_FILE:snug>"
                                                 SNUG_FAKE_CUDA_PLUGIN="$<TARGET_FILE:snug_fake_cuda>")
    add_dependencies(${target} snug snug_fake_cuda)
  endif()
  # Threads that wait must not spin: tests run side by side and share the cores.
  gtest_discover_tests(
    ${target}
    TEST_PREFIX "${folder}."
    NO_PRETTY_VALUES  # the parameters' names are in the tests' already
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 300 LABELS ${folder} ENVIRONMENT OMP_WAIT_POLICY=passive)
endfunction()
