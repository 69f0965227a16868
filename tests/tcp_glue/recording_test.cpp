#include "tcp_glue/recording_transport.hpp"

#include "fake_engine.hpp"
#include "loopback.hpp"

#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <sys/resource.h>

#include <unistd.h>
#include <csignal>
#include <cstring>
#include <map>

namespace iwarp::tcp_glue::test {
namespace {

using file = recording_file;

/// A segment of the file, as a reader of the file sees it.
struct frame {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgment = 0;
  std::uint8_t flags = 0;
  octets payload;
};

std::uint16_t internet_sum(const_bytes octets, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < octets.size(); ++i)
    sum += std::to_integer<std::uint32_t>(octets[i]) << (i % 2 == 0 ? 8 : 0);
  while (sum > 0xFFFF) sum = (sum >> 16) + (sum & 0xFFFF);
  return static_cast<std::uint16_t>(sum);
}

/// Reads the file with libpcap and checks the headers of every record: lengths, checksums.
std::vector<frame> read_frames(const std::string& path) {
  char problem[PCAP_ERRBUF_SIZE] = {};
  pcap_t* capture = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, problem);
  std::vector<frame> frames;
  EXPECT_NE(capture, nullptr) << problem;
  if (capture == nullptr) return frames;
  EXPECT_EQ(pcap_datalink(capture), DLT_RAW);
  pcap_pkthdr* header = nullptr;
  const unsigned char* data = nullptr;
  int got = 0;
  while ((got = pcap_next_ex(capture, &header, &data)) == 1) {
    EXPECT_EQ(header->caplen, header->len);
    const auto ip = as_const_bytes(data, header->caplen);
    const bool v6 = std::to_integer<int>(ip[0]) >> 4 == 6;
    const std::size_t ip_size = v6 ? 40 : 20;
    const auto tcp = ip.subspan(ip_size);
    if (v6) {
      EXPECT_EQ(load_be<std::uint16_t>(ip.subspan<4, 2>()), tcp.size());
    } else {
      EXPECT_EQ(load_be<std::uint16_t>(ip.subspan<2, 2>()), ip.size());
      EXPECT_EQ(internet_sum(ip.first(20)), 0xFFFF);
    }
    const auto addresses = v6 ? ip.subspan(8, 32) : ip.subspan(12, 8);
    const std::uint32_t pseudo = internet_sum(addresses) + 6U + static_cast<std::uint32_t>(tcp.size());
    EXPECT_EQ(internet_sum(tcp, pseudo), 0xFFFF);
    const auto payload = tcp.subspan(20);
    frames.push_back({load_be<std::uint16_t>(tcp.subspan<0, 2>()), load_be<std::uint16_t>(tcp.subspan<2, 2>()),
                      load_be<std::uint32_t>(tcp.subspan<4, 4>()), load_be<std::uint32_t>(tcp.subspan<8, 4>()),
                      std::to_integer<std::uint8_t>(tcp[13]), octets(payload.begin(), payload.end())});
  }
  EXPECT_EQ(got, PCAP_ERROR_BREAK) << pcap_geterr(capture);
  pcap_close(capture);
  return frames;
}

/// What each port sent, put together by the sequence numbers, which must follow each other.
std::map<std::uint16_t, octets> rebuild(const std::vector<frame>& frames) {
  std::map<std::uint16_t, octets> sent;
  std::map<std::uint16_t, std::uint32_t> next;
  for (const frame& f : frames) {
    EXPECT_EQ(f.sequence, next[f.from]);
    if ((f.flags & file::ack) != 0) {
      EXPECT_EQ(f.acknowledgment, next[f.to]);
    }
    next[f.from] += static_cast<std::uint32_t>(f.payload.size()) + ((f.flags & (file::syn | file::fin)) != 0 ? 1 : 0);
    sent[f.from].insert(sent[f.from].end(), f.payload.begin(), f.payload.end());
  }
  return sent;
}

class Recording : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    made = file::create(path);
    ASSERT_TRUE(made) << made.error().message();
    pair = join(loop, GetParam() ? loopback_v6() : loopback_v4());
    ASSERT_TRUE(pair.active && pair.passive);
    active = pair.active->local_endpoint()->port();
    passive = pair.active->remote_endpoint()->port();
  }
  void TearDown() override { ::unlink(path.c_str()); }

  void record(opener who) { pair.active = record_traffic(std::move(pair.active), *made, who); }
  octets read(transport& from, std::size_t size) {
    octets all;
    octets buffer(1U << 16);
    EXPECT_TRUE(loop.run_until([&] {
      if (all.size() == size) return true;  // asked once more at the end
      const auto got = from.read(mutable_bytes(buffer).first(std::min(buffer.size(), size - all.size())));
      if (got.state == transport::io_state::ok)
        all.insert(all.end(), buffer.begin(), buffer.begin() + std::ptrdiff_t(got.size));
      return all.size() == size;
    }));
    return all;
  }
  static void write(transport& to, const octets& data) {
    const std::array piece{gather_piece{data.data(), data.size()}};
    ASSERT_EQ(to.write(piece).size, data.size());
  }

  event_loop loop;
  transport_pair pair;
  std::uint16_t active = 0;
  std::uint16_t passive = 0;
  std::string path = testing::TempDir() + "recording." + std::to_string(::getpid());
  result<std::shared_ptr<file>> made;
};

INSTANTIATE_TEST_SUITE_P(Loopback, Recording, testing::Bool(),
                         [](const auto& which) { return which.param ? "IPv6" : "IPv4"; });

TEST_P(Recording, HoldsBothDirectionsAndBothEnds) {
  record(opener::local);
  const octets question = pattern(1001, 1), answer = pattern(777, 2);
  write(*pair.active, question);
  EXPECT_EQ(read(*pair.passive, question.size()), question);
  write(*pair.passive, answer);
  EXPECT_EQ(read(*pair.active, answer.size()), answer);
  pair.passive->shutdown_write();
  octets one(1);
  ASSERT_TRUE(loop.run_until([&] { return pair.active->read(one).state == transport::io_state::end_of_stream; }));
  pair.active->close();

  const auto frames = read_frames(path);
  auto sent = rebuild(frames);
  EXPECT_EQ(sent[active], question);
  EXPECT_EQ(sent[passive], answer);
  ASSERT_EQ(frames.size(), 7U);
  EXPECT_EQ(frames[0].flags, file::syn);
  EXPECT_EQ(frames[0].from, active);
  EXPECT_EQ(frames[1].flags, file::syn | file::ack);
  EXPECT_EQ(frames[2].flags, file::ack);
  EXPECT_EQ(frames[5].flags, file::fin | file::ack);
  EXPECT_EQ(frames[5].from, passive);
  EXPECT_EQ(frames[6].flags, file::fin | file::ack);
  EXPECT_EQ(frames[6].from, active);
}

TEST_P(Recording, TheOpenersSynComesFirst) {
  record(opener::remote);
  pair.active->abort();
  const auto frames = read_frames(path);
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].from, passive);
  EXPECT_EQ(frames[3].flags, file::rst | file::ack);
  EXPECT_EQ(frames[3].from, active);
}

TEST_P(Recording, AResetOfThePeerIsNotedOnce) {
  record(opener::local);
  pair.passive->abort();
  octets one(1);
  bool lost = false;  // the socket tells it once
  ASSERT_TRUE(
      loop.run_until([&] { return lost = lost || pair.active->read(one).state == transport::io_state::failed; }));
  pair.active->abort();
  const auto frames = read_frames(path);
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[3].flags, file::rst | file::ack);
  EXPECT_EQ(frames[3].from, passive);
}

// More pieces and more octets than a record holds, empty pieces, and partial writes.
TEST_P(Recording, LongGatherListsTakeSeveralRecords) {
  record(opener::local);
  const octets data = pattern(300'000, 3);
  std::vector<gather_piece> pieces;
  for (std::size_t i = 0; i < 700; ++i) pieces.push_back({data.data() + i, i % 9 == 0 ? 0U : 1U});
  octets wanted;
  for (const auto& p : pieces) {
    const auto* from = static_cast<const std::byte*>(p.data);
    wanted.insert(wanted.end(), from, from + p.size);
  }
  pieces.push_back({data.data(), data.size()});
  wanted.insert(wanted.end(), data.begin(), data.end());

  octets received;
  std::size_t taken = 0;
  while (taken < wanted.size()) {
    // What is left of the list, as an engine would offer it after a partial write.
    std::vector<gather_piece> rest;
    std::size_t skip = taken;
    for (const auto& p : pieces) {
      const std::size_t n = std::min(skip, p.size);
      skip -= n;
      if (n < p.size || p.size == 0) rest.push_back({static_cast<const std::byte*>(p.data) + n, p.size - n});
    }
    const auto put = pair.active->write(rest);
    ASSERT_NE(put.state, transport::io_state::failed);
    const octets part = read(*pair.passive, put.size);
    received.insert(received.end(), part.begin(), part.end());
    taken += put.size;
  }
  EXPECT_EQ(received, wanted);
  const auto frames = read_frames(path);
  EXPECT_EQ(rebuild(frames)[active], wanted);
  for (const auto& f : frames) EXPECT_LE(f.payload.size(), file::max_payload);
}

// Both ends in one process: the second has nothing to add.
TEST_P(Recording, OneConnectionIsRecordedOnce) {
  record(opener::local);
  transport* const plain = pair.passive.get();
  pair.passive = record_traffic(std::move(pair.passive), *made, opener::remote);
  EXPECT_EQ(pair.passive.get(), plain);
  // Once the first has gone, the other's addresses are free again.
  pair.active.reset();
  pair.passive = record_traffic(std::move(pair.passive), *made, opener::remote);
  EXPECT_NE(pair.passive.get(), plain);
}

TEST(RecordingFile, IsRefusedWhereItCannotBe) {
  EXPECT_EQ(file::create(testing::TempDir() + "no-such-folder/x").error(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(file::create("/dev/full").error(), std::errc::no_space_on_device);
}

TEST(RecordingFile, IsTakenByOneAtATime) {
  const std::string path = testing::TempDir() + "recording.lock." + std::to_string(::getpid());
  {
    auto first = file::create(path);
    ASSERT_TRUE(first);
    const octets data(100);
    const std::array piece{gather_piece{data.data(), data.size()}};
    (*first)->record({.from = loopback_v4(1), .to = loopback_v4(2)}, piece);
    EXPECT_EQ(file::create(path).error(), std::errc::resource_unavailable_try_again);
    EXPECT_EQ(read_frames(path).size(), 1U) << "refused, yet emptied";
  }
  ASSERT_TRUE(file::create(path));
  EXPECT_EQ(read_frames(path).size(), 0U);
  ::unlink(path.c_str());
}

// A disk that fills up: whole records, then nothing more.
TEST(RecordingFile, EndsAtAWholeRecordWhenTheDiskIsFull) {
  const std::string path = testing::TempDir() + "recording.full." + std::to_string(::getpid());
  auto made = file::create(path);
  ASSERT_TRUE(made);
  struct unlimited {
    rlimit before{};
    sighandler_t signal = std::signal(SIGXFSZ, SIG_IGN);
    unlimited() { ::getrlimit(RLIMIT_FSIZE, &before); }
    ~unlimited() {
      ::setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, signal);
    }
  };
  {
    const unlimited afterwards;
    const rlimit small{.rlim_cur = 5000, .rlim_max = afterwards.before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const octets data(1000);
    const std::array piece{gather_piece{data.data(), data.size()}};
    for (int i = 0; i < 10; ++i) (*made)->record({.from = loopback_v4(1), .to = loopback_v4(2)}, piece);
  }
  EXPECT_FALSE((*made)->writable());
  EXPECT_EQ(read_frames(path).size(), 4U);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace iwarp::tcp_glue::test
