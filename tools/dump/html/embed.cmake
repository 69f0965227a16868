# cmake -DOUT=FILE.cpp -DFOLDER=tools/dump/html -P embed.cmake: the files of the page as octets in a C++ source.
set(text "#include \"tools/dump/page_sources.hpp\"\n\nnamespace iwarp::dump {\nnamespace {\n\n")
set(table "")
foreach(name page.html page.css data.js ladder.js plots.js page.js vendor/uPlot.iife.min.js vendor/uPlot.min.css vendor/uPlot.LICENSE)
  file(READ "${FOLDER}/${name}" octets HEX)
  string(REGEX REPLACE "(................................................................)" "\\1\n" octets "${octets}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," octets "${octets}")
  string(MAKE_C_IDENTIFIER "${name}" variable)
  string(APPEND text "constexpr unsigned char ${variable}[] = {\n${octets}0};\n")
  string(APPEND table "  if (name == \"${name}\") return view(${variable});\n")
endforeach()
string(APPEND text "
template <std::size_t Size>
std::string_view view(const unsigned char (&octets)[Size]) {
  return {reinterpret_cast<const char*>(octets), Size - 1};
}

}  // namespace

std::string_view page_source(std::string_view name) {
${table}  return {};
}

}  // namespace iwarp::dump
")
file(WRITE "${OUT}" "${text}")
