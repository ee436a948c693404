# `cmake --install build/release --prefix DIR`: the program and its laboratory, the library with its headers, and how CMake and pkg-config
# find it.
include(CMakePackageConfigHelpers)
install(TARGETS starling RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(TARGETS starling-lab RUNTIME DESTINATION libexec/starling COMPONENT program)
install(TARGETS libstarling EXPORT starling-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT development)
install(DIRECTORY include/ ${CMAKE_BINARY_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h")
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/starling)
install(EXPORT starling-targets NAMESPACE starling:: DESTINATION ${package} COMPONENT development FILE starling-config.cmake)
# Before 1.0 each minor version may change the interface (docs/reference/versioning.md).
write_basic_package_version_file(starling-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/starling-config-version.cmake DESTINATION ${package} COMPONENT development)
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/starling.pc.in starling.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/starling.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
if(STARLING_STATIC_LIBRARY)
  install(FILES ${CMAKE_BINARY_DIR}/libstarling.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endif()
