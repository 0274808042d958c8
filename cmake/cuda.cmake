# The CUDA backend is a plugin, loaded only when a run asks for it: a CPU run never pays for the driver and its libraries. It is built
# without a GPU; the driver's own library is not linked but found when a device is opened.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
find_path(SNUG_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(SNUG_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
if(NOT SNUG_CUDNN_INCLUDE_DIR OR NOT SNUG_CUDNN_LIBRARY)
  message(FATAL_ERROR "The CUDA backend needs cuDNN 9: set SNUG_CUDNN_INCLUDE_DIR and SNUG_CUDNN_LIBRARY to where it is")
endif()

set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20") # CMake 3.25 does not know that nvcc has it
endif()

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cu
     ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cpp)
list(APPEND cuda_sources ${PROJECT_SOURCE_DIR}/src/backends/operands.cpp ${PROJECT_SOURCE_DIR}/src/backends/driver_account.cpp)
set(cuda_exports ${PROJECT_SOURCE_DIR}/src/backends/cuda/exports.map)
add_library(snug_cuda MODULE ${cuda_sources})
set_target_properties(snug_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} LINK_DEPENDS ${cuda_exports})
target_include_directories(snug_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_include_directories(snug_cuda SYSTEM PRIVATE ${SNUG_CUDNN_INCLUDE_DIR})
# No fused multiply-add in our own kernels behind our back either, so that they agree with the reference.
target_compile_options(snug_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-Xcompiler=-Wall>)
# Its own copies of what it needs of the program (constants and pure functions, no state) stay its own.
target_link_options(snug_cuda PRIVATE -Wl,--version-script=${cuda_exports} -Wl,--no-undefined)
snug_closure(below_cuda ops)
target_link_libraries(snug_cuda PRIVATE snug_options ${below_cuda} ${SNUG_CUDNN_LIBRARY} CUDA::cublasLt CUDA::cudart_static ${CMAKE_DL_LIBS})
add_dependencies(snug_products snug_cuda)
install(TARGETS snug_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
