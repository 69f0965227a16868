#include "tcp_glue/endpoint.hpp"

#include "tcp_glue/error.hpp"
#include "tcp_glue/native_socket.hpp"

#include <arpa/inet.h>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <charconv>

namespace iwarp::tcp_glue {
namespace {

// Longer than any DNS name (253) and any IPv6 address with an interface name behind it.
constexpr std::size_t host_limit = 1024;

result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || ec != std::errc{} || end != text.data() + text.size()) return fail(errc::bad_port);
  return port;
}

// The C library would stop at a NUL and so look up another name than the one written.
bool is_plain(char c) noexcept {
  return static_cast<unsigned char>(c) > ' ' && c != '\x7f' && c != '[' && c != ']' && c != '/';
}

bool is_ipv6(std::string_view text) {
  const auto percent = text.find('%');
  if (percent != std::string_view::npos && percent + 1 == text.size()) return false;  // "%" without a scope
  const std::string address(text.substr(0, percent));
  in6_addr parsed{};
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

bool is_name_or_ipv4(std::string_view text) noexcept { return text.find('%') == std::string_view::npos; }

std::error_code resolver_error(const boost::system::error_code& ec) {
  namespace error = boost::asio::error;
  if (ec == error::host_not_found || ec == error::no_data || ec == error::service_not_found)
    return errc::host_not_found;
  if (ec == error::host_not_found_try_again) return errc::resolver_busy;
  if (ec.category() == boost::system::system_category()) return to_std(ec);
  return errc::resolver_failed;
}

}  // namespace

result<host_port> parse_host_port(std::string_view text, std::uint16_t default_port) {
  if (text.empty() || text.size() > host_limit) return fail(errc::bad_address);
  host_port out{.host = {}, .port = default_port, .port_given = false};
  std::string_view host = text;
  std::string_view port;  // with its colon
  const bool bracketed = text.front() == '[';
  const auto colons = std::count(text.begin(), text.end(), ':');
  if (bracketed) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return fail(errc::bad_address);
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
    if (!port.empty() && port.front() != ':') return fail(errc::bad_address);
  } else if (colons == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }

  if (!std::all_of(host.begin(), host.end(), is_plain)) return fail(errc::bad_address);
  // Two colons or more and no brackets: an IPv6 address, whose last group must not be taken for a port.
  const bool well_formed = bracketed || colons > 1 ? is_ipv6(host) : is_name_or_ipv4(host);
  if (!well_formed) return fail(errc::bad_address);
  out.host = host;
  if (!port.empty()) {
    IWARP_TRY(out.port, parse_port(port.substr(1)));
    out.port_given = true;
  }
  return out;
}

std::string to_string(const endpoint& where) {
  // Not endpoint's operator<<: it needs a stream and throws.
  const std::string address = where.address().to_string();
  const std::string port = std::to_string(where.port());
  return where.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

result<std::vector<endpoint>> resolve(const host_port& where, bool passive) {
  using resolver_type = boost::asio::ip::tcp::resolver;
  boost::asio::io_context context;
  resolver_type resolver(context);
  auto flags = resolver_type::numeric_service;
  if (passive) flags |= resolver_type::passive;
  boost::system::error_code ec;
  const auto found = resolver.resolve(where.host, std::to_string(where.port), flags, ec);
  if (ec) return fail(resolver_error(ec));

  std::vector<endpoint> out;
  for (const auto& entry : found)
    if (std::find(out.begin(), out.end(), entry.endpoint()) == out.end()) out.push_back(entry.endpoint());
  if (out.empty()) return fail(errc::host_not_found);
  if (passive && where.host.empty())
    std::stable_partition(out.begin(), out.end(), [](const endpoint& e) { return e.address().is_v6(); });
  return out;
}

}  // namespace iwarp::tcp_glue
