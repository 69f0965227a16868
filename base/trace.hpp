// Public API.
// Typed trace records that the engines emit. A null sink costs one branch; formatting happens elsewhere.
// Threading: called under whatever serialises the engine.  Time: none.  I/O: none here.
#pragma once

#include <cstdint>
#include <string_view>

namespace iwarp {

enum class trace_event : std::uint8_t {
  state,          ///< the stream changed state: `text` is the new state's name
  fpdu_in,        ///< a whole, verified FPDU arrived: a = ULPDU length, b = stream offset of its ULPDU_Length
  fpdu_out,       ///< an FPDU was framed: a = ULPDU length, b = stream offset
  message_in,     ///< an RDMAP message was delivered: a = opcode, b = length
  message_out,    ///< an RDMAP message was completely framed: a = opcode, b = length
  terminate_in,   ///< a = layer << 16 | type << 8 | code
  terminate_out,  ///< a = layer << 16 | type << 8 | code
  held,           ///< no receive posted: reading stopped (a = 1) or resumed (a = 0)
};

struct trace_record {
  trace_event event;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::string_view text = {};
};

/// Implemented by whoever wants to look. Must not call back into the engine.
class trace_sink {
 public:
  virtual void on_trace(const trace_record& record) noexcept = 0;

 protected:
  ~trace_sink() = default;
};

}  // namespace iwarp
