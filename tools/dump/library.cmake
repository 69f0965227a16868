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
add_library(iwarp_capture STATIC ${sources})
target_link_libraries(iwarp_capture PRIVATE iwarp_build_flags PkgConfig::PCAP Boost::iostreams PUBLIC iwarp_rdmap fmt::fmt)
if(IWARP_SANITIZE)
  target_compile_options(iwarp_capture PRIVATE -O1)
endif()
