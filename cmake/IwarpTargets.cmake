# How every target of this project is compiled, and the one way to add a layer.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(tl-expected REQUIRED)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)

# Warnings and sanitizers: for our own code only, never exported to users.
add_library(iwarp_build_flags INTERFACE)
target_compile_options(iwarp_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum -Werror)
if(IWARP_SANITIZE)
  target_compile_options(iwarp_build_flags INTERFACE -fsanitize=${IWARP_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(iwarp_build_flags INTERFACE -fsanitize=${IWARP_SANITIZE})
endif()

# iwarp_add_layer(NAME LINK target...): the folder this is called from becomes library iwarp_NAME (iwarp::NAME), made of
# every .cpp in it. It may link only the layers that docs/architecture.md's table allows (tests/lint checks the includes).
function(iwarp_add_layer name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(sources)
    add_library(iwarp_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(iwarp_${name} PRIVATE $<BUILD_INTERFACE:iwarp_build_flags>)
  else()
    add_library(iwarp_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(iwarp::${name} ALIAS iwarp_${name})
  set_target_properties(iwarp_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(iwarp_${name} ${scope} cxx_std_20)
  target_include_directories(iwarp_${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/iwarp>)
  target_link_libraries(iwarp_${name} ${scope} ${arg_LINK})
endfunction()
