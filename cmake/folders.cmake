# starling_library(NAME dependency...): src/NAME/**.cpp as a static library. Folders whose own loops cost nothing beside what they call are
# optimised a little only. Compiled headers were measured and gain nothing in a unity build: what costs are the templates that each
# compilation instantiates again, and with json or CLI11 among the headers every one instantiates those of both.
set(starling_cold cli config doctor evaluation experiments exporting guard interop laboratory launch library manual measure migration
                  program progress run saving serve settings translate watch)

function(starling_optimised_as target folder)
  if(folder IN_LIST starling_cold)
    # With -O1 g++ 12 takes the value of a std::optional that was looked at for one that may not be there.
    target_compile_options(${target} PRIVATE -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
endfunction()

function(starling_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(NOT sources)
    return()
  endif()
  add_library(starling_${name} STATIC ${sources})
  target_link_libraries(starling_${name} PUBLIC starling_flags ${ARGN})
  starling_optimised_as(starling_${name} ${name})
endfunction()
