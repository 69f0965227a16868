# How every target of this project is compiled, and the one way to add a layer or a fuzzer.
include(GNUInstallDirs)
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
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 reports these inside std::vector and std::string at -O3 where there is nothing (GCC bugs 105329, 105651,
  # 107852). AddressSanitizer and clang watch over the same faults.
  target_compile_options(iwarp_build_flags INTERFACE
    -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
endif()
if(IWARP_SANITIZE)
  target_compile_options(iwarp_build_flags INTERFACE -fsanitize=${IWARP_SANITIZE} -fno-omit-frame-pointer -g
    -UNDEBUG)  # asserts belong to what a sanitized run looks for
  target_link_options(iwarp_build_flags INTERFACE -fsanitize=${IWARP_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The instrumentation hides from g++ what initialises what: it then warns where there is nothing. The build without
    # sanitizers keeps the warning.
    target_compile_options(iwarp_build_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(IWARP_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio has fences, which ThreadSanitizer does not follow. It needs none of them: Asio's queues are under mutexes.
    target_compile_options(iwarp_build_flags INTERFACE -Wno-tsan)
  endif()
  if(IWARP_SANITIZE MATCHES "undefined")
    # A finding must fail the test, not only print a line.
    target_compile_options(iwarp_build_flags INTERFACE -fno-sanitize-recover=all)
  endif()
endif()
if(IWARP_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "IWARP_BUILD_FUZZERS needs clang (libFuzzer): configure with --preset fuzz")
  endif()
  # The layers report coverage to the fuzzer; only the fuzzers themselves link its main().
  target_compile_options(iwarp_build_flags INTERFACE -fsanitize=fuzzer-no-link -g)
  target_link_options(iwarp_build_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Every layer, in the order it was added: lower layers first. cmake/IwarpInstall.cmake installs them.
set_property(GLOBAL PROPERTY IWARP_LAYERS "")

# iwarp_add_layer(NAME LINK target...): the folder this is called from becomes library iwarp_NAME (iwarp::NAME), made of
# every .cpp in it. It may link only the layers that docs/architecture.md's table allows (tests/lint checks the includes).
function(iwarp_add_layer name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/detail/*.cpp")
  if(sources)
    add_library(iwarp_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(iwarp_${name} PRIVATE $<BUILD_INTERFACE:iwarp_build_flags>)
    if(IWARP_SANITIZE)
      # The sanitized build is compiled without optimization, which takes less than half the time; the layers alone get
      # some, so that tests that run them millions of times stay quick.
      target_compile_options(iwarp_${name} PRIVATE -O1)
    endif()
  else()
    add_library(iwarp_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(iwarp::${name} ALIAS iwarp_${name})
  set_target_properties(iwarp_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(iwarp_${name} ${scope} cxx_std_20)
  target_include_directories(iwarp_${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/iwarp>)
  target_link_libraries(iwarp_${name} ${scope} ${arg_LINK})
  set_property(GLOBAL APPEND PROPERTY IWARP_LAYERS ${name})
endfunction()

# iwarp_add_fuzzer(NAME SOURCES s... [LINK t...] [CORPUS folder]): one libFuzzer program, part of target iwarp_fuzzers. Its
# ctest (label fuzz) runs every seed of the corpus and then mutates for IWARP_FUZZ_SECONDS. What it finds stays in the
# build folder; a crash becomes a seed and a unit test by hand.
set(IWARP_FUZZ_SECONDS 20 CACHE STRING "How long the ctest of each fuzzer runs, in seconds")
function(iwarp_add_fuzzer name)
  cmake_parse_arguments(arg "" "CORPUS" "SOURCES;LINK" ${ARGN})
  if(NOT TARGET iwarp_fuzzers)
    add_custom_target(iwarp_fuzzers)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE iwarp_build_flags ${arg_LINK})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(iwarp_fuzzers ${name})
  set(found "${CMAKE_CURRENT_BINARY_DIR}/${name}.found")
  file(MAKE_DIRECTORY "${found}")
  add_test(NAME fuzz.${name}
    COMMAND ${name} -max_total_time=${IWARP_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
      "-artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}." "${found}" ${arg_CORPUS})
  math(EXPR limit "${IWARP_FUZZ_SECONDS} + 120")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()
