// Every capture of pcap_fixtures/ against its golden lines, NAME.jsonl. ./pcap_fixtures/update BUILD_FOLDER writes them
// anew.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/dump/collected.hpp"
#include "tools/dump/capture_file.hpp"
#include "tools/dump/json_writer.hpp"

namespace iwarp::dump_test {
namespace {

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& f : std::filesystem::directory_iterator(IWARP_FIXTURES)) {
    if (f.path().extension() == ".pcap") names.push_back(f.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string path_of(const std::string& name, const char* extension) {
  return std::string(IWARP_FIXTURES) + "/" + name + extension;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string json_of(const std::string& path) {
  const int fd = memfd_create("json", MFD_CLOEXEC);
  {
    dump::output_buffer buffer(fd);
    dump::json_writer writer(buffer);
    dump::capture_file file(path, "");
    dump::analyser analyser({}, writer);
    for (dump::packet p; file.next(p);) analyser.add(p);
    analyser.finish();
    buffer.flush();
  }
  std::string text(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  ::close(fd);
  return text;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, SameLines) {
  std::ifstream in(path_of(GetParam(), ".jsonl"));
  ASSERT_TRUE(in) << "no golden lines: ./pcap_fixtures/update BUILD_FOLDER writes them";
  std::stringstream text;
  text << in.rdbuf();
  const auto expected = lines_of(text.str());
  const auto got = lines_of(json_of(path_of(GetParam(), ".pcap")));
  for (std::size_t i = 0; i != std::min(expected.size(), got.size()); ++i)
    ASSERT_EQ(got[i], expected[i]) << "line " << i + 1;
  EXPECT_EQ(got.size(), expected.size());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Golden, testing::ValuesIn(fixtures()), [](const auto& p) {
  std::string name = p.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

// What the notes of these captures say was counted elsewhere.
struct counts {
  const char* name;
  std::uint64_t streams;
  std::uint64_t fpdus;
  std::uint64_t messages;
};

class Counts : public testing::TestWithParam<counts> {};

TEST_P(Counts, AreThoseOfTheNotesAndNothingIsWrong) {
  collected got;
  dump::capture_file file(path_of(GetParam().name, ".pcap"), "");
  dump::analyser analyser({}, got);
  for (dump::packet p; file.next(p);) analyser.add(p);
  const auto sum = analyser.finish();
  EXPECT_EQ(sum.streams, GetParam().streams);
  EXPECT_EQ(sum.fpdus, GetParam().fpdus);
  EXPECT_EQ(sum.messages, GetParam().messages);
  EXPECT_EQ(sum.problems, 0u) << got.rules();
  EXPECT_EQ(sum.crc_bad, 0u);
  EXPECT_EQ(sum.lost_octets, 0u);
}

INSTANTIATE_TEST_SUITE_P(Siw, Counts,
                         testing::Values(counts{"siw-rping", 5, 87, 75}, counts{"siw-write-5000", 1, 24, 6},
                                         counts{"siw-read-5000", 1, 30, 12}, counts{"siw-read-70000", 1, 306, 12},
                                         counts{"siw-send-5000-pingpong", 1, 48, 12}),
                         [](const auto& p) {
                           std::string name = p.param.name;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace iwarp::dump_test
