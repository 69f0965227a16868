#include "tcp_glue/error.hpp"

#include <string>

namespace iwarp::tcp_glue {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "iwarp.tcp_glue"; }

  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {  // no default
      case errc::bad_address:
        return "not an address: expected NAME, IPv4 or IPv6 address, with :PORT behind it (an IPv6 address in "
               "brackets)";
      case errc::bad_port:
        return "not a TCP port: expected a number from 0 to 65535 behind the colon";
      case errc::host_not_found:
        return "no address is known for this host name";
      case errc::resolver_busy:
        return "the host name could not be looked up now; try again later";
      case errc::resolver_failed:
        return "the host name cannot be looked up: the name service answered with an error";
    }
    return "unknown iwarp.tcp_glue error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace iwarp::tcp_glue
