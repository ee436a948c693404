# libstarling: include/starling/ and include/starling.h, a thin layer (src/library/) over the rest. Only what those headers declare is
# visible. With -DSTARLING_STATIC_LIBRARY=ON there is also libstarling.a, all in one archive.
option(STARLING_STATIC_LIBRARY "Build libstarling.a too" OFF)
configure_file(include/starling/version.h.in include/starling/version.h @ONLY)
file(GLOB library_sources CONFIGURE_DEPENDS src/library/*.cpp)
set(library_parts starling_batching starling_run starling_exporting)

add_library(starling_facade OBJECT ${library_sources})
target_link_libraries(starling_facade PUBLIC ${library_parts})
target_include_directories(starling_facade PRIVATE include ${CMAKE_BINARY_DIR}/include)
target_compile_definitions(starling_facade PRIVATE STARLING_BUILDING_LIBRARY)
starling_optimised_as(starling_facade library)

add_library(libstarling SHARED $<TARGET_OBJECTS:starling_facade>)
add_library(starling::starling ALIAS libstarling)
target_link_libraries(libstarling PRIVATE ${library_parts})
target_link_options(libstarling PRIVATE -Wl,--no-undefined -Wl,--as-needed -Wl,--exclude-libs,ALL)
target_include_directories(libstarling INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                           $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(libstarling INTERFACE cxx_std_17)
# Before 1.0 each minor version may change the interface.
set(soversion ${PROJECT_VERSION_MAJOR})
if(soversion EQUAL 0)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(libstarling PROPERTIES OUTPUT_NAME starling EXPORT_NAME starling VERSION ${PROJECT_VERSION}
                      SOVERSION ${soversion})

# Returns in `result` the static libraries of ours that a target is linked with.
function(starling_static_parts target result)
  set(found ${${result}})
  get_target_property(linked ${target} LINK_LIBRARIES)
  foreach(part ${linked})
    if(part MATCHES "^starling_" AND NOT part IN_LIST found)
      get_target_property(type ${part} TYPE)
      if(type STREQUAL STATIC_LIBRARY)
        list(APPEND found ${part})
      endif()
      starling_static_parts(${part} found)
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

if(STARLING_STATIC_LIBRARY)
  set(parts)
  starling_static_parts(starling_facade parts)
  set(archive ${CMAKE_BINARY_DIR}/libstarling.a)
  set(script "create ${archive}\n")
  foreach(part ${parts})
    string(APPEND script "addlib $<TARGET_FILE:${part}>\n")
  endforeach()
  string(APPEND script "addmod $<JOIN:$<TARGET_OBJECTS:starling_facade>,\naddmod >\nsave\nend\n")
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/libstarling.mri CONTENT "${script}")
  add_custom_command(OUTPUT ${archive} COMMAND ${CMAKE_AR} -M <${CMAKE_BINARY_DIR}/libstarling.mri DEPENDS ${parts} starling_facade)
  add_custom_target(libstarling_static ALL DEPENDS ${archive})
endif()

# What `make install` installs besides the program.
add_custom_target(libraries DEPENDS libstarling)
if(STARLING_STATIC_LIBRARY)
  add_dependencies(libraries libstarling_static)
endif()
