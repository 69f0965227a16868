# What `cmake --install` puts where: headers, one library per layer, the programs, and the files by which CMake
# (find_package(iwarp CONFIG)) and pkg-config (iwarp.pc) find them. The installed tree may be moved as a whole.
include(CMakePackageConfigHelpers)

# iwarp::iwarp is what most users link: the public API with everything below it.
add_library(iwarp_iwarp INTERFACE)
add_library(iwarp::iwarp ALIAS iwarp_iwarp)
set_target_properties(iwarp_iwarp PROPERTIES EXPORT_NAME iwarp)
target_link_libraries(iwarp_iwarp INTERFACE iwarp_verbs)

get_property(layers GLOBAL PROPERTY IWARP_LAYERS)
set(archives "")
foreach(layer IN LISTS layers)
  install(TARGETS iwarp_${layer} EXPORT iwarpTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${layer}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/iwarp/${layer}"
    FILES_MATCHING PATTERN "*.hpp" PATTERN "compat" EXCLUDE)
  get_target_property(type iwarp_${layer} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(PREPEND archives "-liwarp_${layer}")  # a layer comes before those it uses
  endif()
endforeach()
install(TARGETS iwarp_iwarp EXPORT iwarpTargets)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/iwarp")
install(EXPORT iwarpTargets NAMESPACE iwarp:: DESTINATION ${package_dir})
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/iwarpConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/iwarpConfig.cmake" INSTALL_DESTINATION ${package_dir})
# Below 1.0 every minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/iwarpConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/iwarpConfig.cmake" "${PROJECT_BINARY_DIR}/iwarpConfigVersion.cmake"
  DESTINATION ${package_dir})

list(JOIN archives " " IWARP_PC_LIBS)
# From lib/pkgconfig back to the prefix: "../..", one more where libraries live in lib/x86_64-linux-gnu.
file(RELATIVE_PATH IWARP_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" IWARP_PC_PREFIX "${IWARP_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/iwarp.pc.in" "${PROJECT_BINARY_DIR}/iwarp.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/iwarp.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# Every program that tools/ builds is installed.
function(iwarp_install_programs folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
  endforeach()
  get_property(subfolders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    iwarp_install_programs("${subfolder}")
  endforeach()
endfunction()
if(IWARP_BUILD_TOOLS AND EXISTS "${PROJECT_SOURCE_DIR}/tools/CMakeLists.txt")
  iwarp_install_programs("${PROJECT_SOURCE_DIR}/tools")
endif()

file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.[1-9]")
foreach(page IN LISTS pages)
  string(REGEX MATCH "[1-9]$" section "${page}")
  install(FILES "${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endforeach()
