#include "tools/dump/events.hpp"

#include <array>

namespace iwarp::dump {

std::string_view short_name(rdmap::opcode op) noexcept {
  static constexpr std::array<std::string_view, 16> names{
      "Write",     "ReadReq", "ReadResp",  "Send",       "SendInv", "SendSE", "SendSEInv", "Terminate",
      "Immediate", "ImmSE",   "AtomicReq", "AtomicResp", "op0xC",   "op0xD",  "op0xE",     "op0xF"};
  return names[static_cast<std::size_t>(op) & rdmap::opcode_mask];
}

std::string_view name_of(crc_state s) noexcept {
  switch (s) {
    case crc_state::ok:
      return "ok";
    case crc_state::bad:
      return "bad";
    case crc_state::off:
      return "off";
    case crc_state::cut:
      return "cut";
  }
  return "";
}

}  // namespace iwarp::dump
