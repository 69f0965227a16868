# iwarp_capture: all of iwarp-dump but main() and what talks to a live peer. Included by tools/dump and, where the programs are not built, by the fuzzer.
# It needs the codecs of mpa, ddp and rdmap, and no verbs.
find_package(Boost 1.74 REQUIRED COMPONENTS iostreams)
find_package(fmt REQUIRED)
if(NOT TARGET PkgConfig::PCAP)
  pkg_check_modules(PCAP REQUIRED IMPORTED_TARGET GLOBAL libpcap)
endif()

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/dump/*.cpp")
foreach(name main live_stream replayer)
  list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/tools/dump/${name}.cpp")
endforeach()
# The page of --html.
set(page_folder "${PROJECT_SOURCE_DIR}/tools/dump/html")
file(GLOB_RECURSE page_files CONFIGURE_DEPENDS "${page_folder}/*")
set(page_sources "${CMAKE_CURRENT_BINARY_DIR}/page_sources.cpp")
add_custom_command(OUTPUT "${page_sources}" DEPENDS ${page_files} VERBATIM
  COMMAND "${CMAKE_COMMAND}" "-DOUT=${page_sources}" "-DFOLDER=${page_folder}" -P "${page_folder}/embed.cmake")

add_library(iwarp_capture STATIC ${sources} "${page_sources}")
target_link_libraries(iwarp_capture PRIVATE iwarp_build_flags PkgConfig::PCAP Boost::iostreams PUBLIC iwarp_rdmap fmt::fmt)
if(IWARP_SANITIZE)
  target_compile_options(iwarp_capture PRIVATE -O1)
endif()
