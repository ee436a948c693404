# The backend: src/backend/cpu/kernels/*.cpp are compiled once per instruction set and chosen at run time (backend/cpu/dispatch.cpp). 64-bit
# Arm has one, NEON, and no products of bytes of our own (vnni/).
file(GLOB_RECURSE backend_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/*.cpp)
file(GLOB kernel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cpu/kernels/*.cpp)
list(REMOVE_ITEM backend_sources ${kernel_sources})
list(FILTER backend_sources EXCLUDE REGEX "/backend/cuda/")
if(STARLING_X86)
  set(kernel_isas v2 v3 v4)
else()
  set(kernel_isas neon)
  list(FILTER backend_sources EXCLUDE REGEX "/cpu/vnni/")
endif()
if(backend_sources)
  add_library(starling_backend STATIC ${backend_sources})
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/backend/host_flat.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/backend/cpu/vnni/int8_product.cpp PROPERTIES COMPILE_OPTIONS
    "-O3;-march=x86-64-v4;-mavx512vnni;-mprefer-vector-width=512;-Wno-maybe-uninitialized;-Wno-uninitialized")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/backend/cpu/vnni/tiles.cpp PROPERTIES COMPILE_OPTIONS
    "-O3;-march=x86-64-v4;-mamx-tile;-mamx-int8;-mprefer-vector-width=512;-Wno-maybe-uninitialized;-Wno-uninitialized")
  target_link_libraries(starling_backend PUBLIC starling_flags starling_tensor ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)
  foreach(isa ${kernel_isas})
    add_library(starling_kernels_${isa} OBJECT ${kernel_sources})
    target_link_libraries(starling_kernels_${isa} PRIVATE starling_flags starling_tensor OpenMP::OpenMP_CXX)
    target_compile_definitions(starling_kernels_${isa} PRIVATE STARLING_ISA=${isa})
    target_compile_options(starling_kernels_${isa} PRIVATE -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast
                           -Wno-psabi -Wno-maybe-uninitialized -Wno-uninitialized)
    set_target_properties(starling_kernels_${isa} PROPERTIES UNITY_BUILD OFF)  # what is inlined must not depend on it
    target_sources(starling_backend PRIVATE $<TARGET_OBJECTS:starling_kernels_${isa}>)
  endforeach()
  if(STARLING_X86)
    target_compile_options(starling_kernels_v3 PRIVATE -march=x86-64-v3)
    target_compile_options(starling_kernels_v4 PRIVATE -march=x86-64-v4 -mprefer-vector-width=512)
  endif()
endif()
