# The CUDA backend is a plugin, loaded only when a run asks for it: a CPU run never pays for the driver and its libraries.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20") # CMake 3.25 does not know that nvcc has it
endif()

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cu
     ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cpp)
if(cuda_sources)
  add_library(snug_cuda MODULE ${cuda_sources})
  set_target_properties(snug_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_include_directories(snug_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  # No fused multiply-add in our own kernels either, so that they agree with the reference.
  target_compile_options(snug_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-Xcompiler=-Wall>)
  snug_closure(below_cuda backends)
  target_link_libraries(snug_cuda PRIVATE snug_options ${below_cuda} CUDA::cudart)
  add_dependencies(snug_products snug_cuda)
  install(TARGETS snug_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
