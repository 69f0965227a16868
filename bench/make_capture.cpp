// Writes a capture of iWARP traffic of any size, for measuring iwarp-dump: one connection of TCP segments of 1460
// octets, an FPDU each, CRC on; Writes of 64 KiB with a Send behind each, and Reads of 64 KiB the other way.
//   iwarp-bench-make-capture FILE MEBIBYTES [ULPDUs of a Write]
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "ddp/header.hpp"
#include "mpa/fpdu_tx.hpp"
#include "mpa/startup_frame.hpp"
#include "rdmap/opcode.hpp"
#include "rdmap/read_request.hpp"

namespace {

using namespace iwarp;

constexpr std::size_t segment = 1460;
constexpr std::size_t payload_of_fpdu = segment - 6 - ddp::tagged_header_size;
constexpr std::size_t ip_and_tcp = 40;
constexpr std::size_t ethernet = 14;

class writer {
 public:
  explicit writer(const char* path) : file_(std::fopen(path, "wb")) {
    if (!file_) {
      std::perror(path);
      std::exit(1);
    }
    const std::uint32_t header[6] = {0xA1B2C3D4u, 4u << 16 | 2u, 0, 0, 262144, 1};
    put(header, sizeof header);
  }
  ~writer() { std::fclose(file_); }

  /// One TCP segment. `from`: 0 the client, 1 the server.
  void frame(int from, std::uint8_t flags, std::span<const gather_piece> pieces, std::size_t size) {
    std::array<std::byte, ethernet + ip_and_tcp> h{};
    const mutable_bytes out(h);
    const auto peer = 1 - from;
    store_be(out.subspan<4, 2>(), static_cast<std::uint16_t>(2 - from));
    store_be(out.subspan<10, 2>(), static_cast<std::uint16_t>(1 + from));
    store_be<std::uint16_t>(out.subspan<12, 2>(), 0x0800);
    store_be<std::uint16_t>(out.subspan<14, 2>(), 0x4500);
    store_be(out.subspan<16, 2>(), static_cast<std::uint16_t>(ip_and_tcp + size));
    store_be<std::uint16_t>(out.subspan<22, 2>(), 0x4006);
    store_be<std::uint32_t>(out.subspan<26, 4>(), 0x0A000001u + static_cast<std::uint32_t>(from));
    store_be<std::uint32_t>(out.subspan<30, 4>(), 0x0A000001u + static_cast<std::uint32_t>(peer));
    store_be<std::uint16_t>(out.subspan<34, 2>(), from == 0 ? 40000 : 7174);
    store_be<std::uint16_t>(out.subspan<36, 2>(), from == 0 ? 7174 : 40000);
    store_be(out.subspan<38, 4>(), next_[from]);
    store_be(out.subspan<42, 4>(), (flags & 0x10) != 0 ? next_[peer] : 0u);
    h[46] = std::byte{0x50};
    h[47] = static_cast<std::byte>(flags);
    store_be<std::uint16_t>(out.subspan<48, 2>(), 65535);
    const std::uint32_t length = static_cast<std::uint32_t>(h.size() + size);
    const std::uint32_t record[4] = {time_ / 1'000'000, time_ % 1'000'000, length, length};
    ++time_;
    put(record, sizeof record);
    put(h.data(), h.size());
    for (const gather_piece& p : pieces) put(p.data, p.size);
    next_[from] += static_cast<std::uint32_t>(size) + ((flags & 3) != 0 ? 1u : 0u);
  }
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  void put(const void* data, std::size_t size) {
    if (std::fwrite(data, 1, size, file_) != size) {
      std::perror("iwarp-bench-make-capture");
      std::exit(1);
    }
    written_ += size;
  }
  std::FILE* file_;
  std::uint64_t written_ = 0;
  std::uint32_t next_[2] = {1, 1};
  std::uint32_t time_ = 1'700'000'000u % 4'000'000u;
};

class side {
 public:
  side(writer& out, int from) : out_(out), from_(from) { tx_.start(true, false); }
  void ulpdu(const_bytes header, const_bytes payload) {
    const const_bytes pieces[] = {payload};
    tx_.frame(batch_, header, std::span(pieces, payload.empty() ? 0 : 1));
    const std::size_t size = batch_.size();
    out_.frame(from_, 0x18, batch_.pieces(), size);
    batch_.advance(size);
  }
  void tagged(rdmap::opcode op, std::uint32_t key, const std::vector<std::byte>& data) {
    for (std::size_t at = 0; at < data.size(); at += payload_of_fpdu) {
      const std::size_t size = std::min(payload_of_fpdu, data.size() - at);
      std::array<std::byte, ddp::tagged_header_size> h{};
      ddp::tagged_header{.last = at + size == data.size(),
                         .ulp_control = rdmap::control_octet(op),
                         .stag = {key},
                         .offset = 0x10000 + at}
          .emit(h);
      ulpdu(h, const_bytes(data).subspan(at, size));
    }
  }
  void untagged(rdmap::opcode op, std::uint32_t queue, const_bytes payload) {
    std::array<std::byte, ddp::untagged_header_size + 64> h{};
    ddp::untagged_header{.ulp_control = rdmap::control_octet(op), .queue = queue, .sequence = {++sequence_[queue]}}
        .emit(std::span(h).first<ddp::untagged_header_size>());
    std::ranges::copy(payload, h.begin() + ddp::untagged_header_size);
    ulpdu(const_bytes(h).first(ddp::untagged_header_size + payload.size()), {});
  }

 private:
  writer& out_;
  int from_;
  mpa::fpdu_tx tx_;
  mpa::tx_batch batch_;
  std::array<std::uint32_t, 2> sequence_{};
};

void startup(writer& out, mpa::frame_kind kind, int from) {
  mpa::startup_frame f;
  f.header = {.kind = kind, .crc = true, .revision = 2};
  f.enhanced = mpa::enhanced_data{.ird = 16, .ord = 16};
  std::array<std::byte, mpa::startup_fixed_size + mpa::max_private_data> octets{};
  const gather_piece piece{octets.data(), f.emit(octets)};
  out.frame(from, 0x18, std::span(&piece, 1), piece.size);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FILE MEBIBYTES [FPDUS-OF-A-WRITE]\n", argv[0]);
    return 2;
  }
  const std::uint64_t limit = std::strtoull(argv[2], nullptr, 10) << 20;
  const std::size_t fpdus = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 45;
  writer out(argv[1]);
  out.frame(0, 0x02, {}, 0);
  out.frame(1, 0x12, {}, 0);
  out.frame(0, 0x10, {}, 0);
  startup(out, mpa::frame_kind::request, 0);
  startup(out, mpa::frame_kind::reply, 1);
  side client(out, 0);
  side server(out, 1);
  std::vector<std::byte> data(fpdus * payload_of_fpdu);
  for (std::size_t i = 0; i != data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 >> 3);
  for (std::uint32_t round = 0; out.written() < limit; ++round) {
    client.tagged(rdmap::opcode::write, 0x11223300, data);
    client.untagged(rdmap::opcode::send, rdmap::send_queue, const_bytes(data).first(32));
    std::array<std::byte, rdmap::read_request_size> request{};
    rdmap::read_request{.sink = {0xAABBCC00},
                        .sink_offset = 0x10000,
                        .size = static_cast<std::uint32_t>(data.size()),
                        .source = {0x11223300},
                        .source_offset = 0}
        .emit(request);
    client.untagged(rdmap::opcode::read_request, rdmap::read_request_queue, request);
    server.tagged(rdmap::opcode::read_response, 0xAABBCC00, data);
  }
  out.frame(0, 0x11, {}, 0);
  out.frame(1, 0x11, {}, 0);
  return 0;
}
