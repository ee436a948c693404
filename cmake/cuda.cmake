# The CUDA backend, where it is asked for (the preset `cuda`): src/backend/cuda/, kernels by nvcc; otherwise src/backend/no_cuda.cpp, which
# says how to get it. A program built with it also runs on machines without a card.
option(STARLING_CUDA "Build the backend for NVIDIA cards (needs the CUDA toolkit, 12 or newer)" OFF)
if(STARLING_CUDA)
  enable_language(CUDA)
  # CMake 3.25 does not know what newer compilers can.
  foreach(kind STANDARD EXTENSION)
    if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
      set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
    endif()
  endforeach()
  find_package(CUDAToolkit 12 REQUIRED)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/*.cpp ${CMAKE_SOURCE_DIR}/src/backend/cuda/kernels/*.cu)
  add_library(starling_cuda OBJECT ${cuda_sources})
  set_target_properties(starling_cuda PROPERTIES CUDA_STANDARD 20 UNITY_BUILD OFF)
  target_include_directories(starling_cuda PRIVATE ${CMAKE_SOURCE_DIR}/src ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(starling_cuda PRIVATE fmt::fmt)
  # Spilled registers cost time, so they end the build, but for workstation cards (sm_120), where one kernel spills 60 bytes.
  if(NOT "${CMAKE_CUDA_ARCHITECTURES}" MATCHES "12[0-9]")
    set(warn_spills "-Xptxas=-warn-spills")
  endif()
  # Without -use_fast_math: parity and equal bits come first.
  target_compile_options(starling_cuda PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Werror=all-warnings;${warn_spills}>"
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-Werror=switch>")
  get_target_property(sources starling_backend SOURCES)
  list(FILTER sources EXCLUDE REGEX "/no_cuda\\.cpp$")
  set_target_properties(starling_backend PROPERTIES SOURCES "${sources}")
  target_sources(starling_backend PRIVATE $<TARGET_OBJECTS:starling_cuda>)
  # cuBLASLt is opened at run time (libraries.h). Only linked: all else is compiled as it is without CUDA.
  target_link_libraries(starling_backend PUBLIC $<LINK_ONLY:CUDA::cudart_static>)
endif()
