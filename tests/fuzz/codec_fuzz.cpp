// Every codec of DDP and RDMAP: what parses must come out the same after emit and parse, and nothing may crash.
#include <algorithm>
#include <array>

#include "ddp/header.hpp"
#include "rdmap/read_request.hpp"
#include "rdmap/terminate.hpp"
#include "tests/fuzz/check.hpp"

using namespace iwarp;

namespace {

void headers(const_bytes in) {
  if (!in.empty() && ddp::is_tagged(in[0])) {
    if (const auto header = ddp::tagged_header::parse(in)) {
      std::array<std::byte, ddp::tagged_header_size> out;
      header->emit(out);
      FUZZ_CHECK(ddp::tagged_header::parse(out) == *header);
    }
  } else if (const auto header = ddp::untagged_header::parse(in)) {
    std::array<std::byte, ddp::untagged_header_size> out;
    header->emit(out);
    FUZZ_CHECK(ddp::untagged_header::parse(out) == *header);
  }
}

void read_request(const_bytes in) {
  if (in.size() < rdmap::read_request_size) return;
  const auto wire = in.first<rdmap::read_request_size>();
  std::array<std::byte, rdmap::read_request_size> out;
  rdmap::read_request::parse(wire).emit(out);
  FUZZ_CHECK(std::equal(out.begin(), out.end(), wire.begin()));
}

void terminate(const_bytes in) {
  const auto message = rdmap::terminate_message::parse(in);
  FUZZ_CHECK(message.has_value() == (in.size() >= rdmap::term_control_size));
  if (!message) return;
  FUZZ_CHECK(!rdmap::describe(message->code).empty());
  std::array<std::byte, rdmap::max_terminate_size> out;
  const std::size_t size = message->emit(out);
  FUZZ_CHECK(size <= out.size());
  const auto again = rdmap::terminate_message::parse(const_bytes{out}.first(size));
  FUZZ_CHECK(again.has_value() && again->code == message->code);
  FUZZ_CHECK(again->ddp_header_size == message->ddp_header_size && again->request == message->request);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const const_bytes in = as_const_bytes(data, size);
  headers(in);
  read_request(in);
  terminate(in);
  return 0;
}
