// The interop matrix: `serve` is an end that waits for a driver, `run` drives an end of its own and a served one
// through every cell. One program per RDMA library; the driver is the same in each.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <iostream>

#include "tests/interop/matrix/cells.hpp"

namespace iwarp::interop {
namespace {

[[noreturn]] void fail_errno(const std::string& what) { throw failure(what + ": " + std::strerror(errno)); }

sockaddr_storage address_of(const std::string& host, std::uint16_t port, socklen_t& size) {
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    size = sizeof *v6;
  } else {
    throw failure("no address: " + host);
  }
  return storage;
}

void prepare(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// An end in a process of its own, so that it can be killed and has no thread of anybody else.
[[noreturn]] void be_an_end(line_socket driver) {
  int code = 0;
  try {
    const std::unique_ptr<end> here = make_end();
    serve(*here, driver);
  } catch (const std::exception& problem) {
    std::cerr << "interop matrix, end: " << problem.what() << std::endl;
    code = 1;
  }
  ::_exit(code);
}

int serve_command(const std::string& host, std::uint16_t port) {
  socklen_t size = 0;
  const sockaddr_storage where = address_of(host, port, size);
  const int listener = ::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&where), size) != 0) fail_errno("bind");
  if (::listen(listener, 4) != 0) fail_errno("listen");
  sockaddr_in6 bound{};
  size = sizeof bound;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size);
  std::cout << "serving port " << ntohs(bound.sin6_port) << std::endl;  // sin_port is at the same place
  ::signal(SIGCHLD, SIG_IGN);                                           // nobody waits for the ends
  while (true) {
    const int driver = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (driver < 0) {
      if (errno == EINTR) continue;
      fail_errno("accept");
    }
    prepare(driver);
    if (::fork() == 0) {
      ::close(listener);
      be_an_end(line_socket(driver));
    }
    ::close(driver);
  }
}

line_socket connect_to(const std::string& host, std::uint16_t port) {
  socklen_t size = 0;
  const sockaddr_storage where = address_of(host, port, size);
  const int descriptor = ::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail_errno("socket");
  line_socket control(descriptor);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&where), size) != 0)
    fail_errno("control connection to " + host);
  prepare(descriptor);
  return control;
}

std::string local_address(const line_socket& control) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  ::getsockname(control.descriptor(), reinterpret_cast<sockaddr*>(&storage), &size);
  char text[INET6_ADDRSTRLEN] = "";
  const void* octets = storage.ss_family == AF_INET
                           ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(&storage)->sin_addr)
                           : static_cast<const void*>(&reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr);
  ::inet_ntop(storage.ss_family, octets, text, sizeof text);
  return text;
}

line_socket fork_an_end() {
  int both[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) fail_errno("socketpair");
  std::cout.flush();
  const pid_t child = ::fork();
  if (child < 0) fail_errno("fork");
  if (child == 0) {
    ::close(both[0]);
    be_an_end(line_socket(both[1]));
  }
  ::close(both[1]);
  return line_socket(both[0]);
}

}  // namespace
}  // namespace iwarp::interop

int main(int argc, char** argv) {
  using namespace iwarp::interop;
  CLI::App app{"Crosses every operation and error between two RDMA libraries, cell by cell."};
  app.require_subcommand(1);
  std::string host;
  std::uint16_t port = 0;
  CLI::App* serve = app.add_subcommand("serve", "Be an end; a driver connects to this address for control");
  CLI::App* run = app.add_subcommand("run", "Drive an end of this program and a served one");
  for (CLI::App* command : {serve, run}) {
    command->add_option("address", host, "address of the control connection, which is that of the served end")
        ->required();
    command->add_option("port", port, "port of the control connection")->required();
  }
  std::string only = ".";
  std::string groups = "transfer,depth,errors,connection";
  bool list = false;
  bool quick = false;
  run->add_option("--only", only, "cells whose name this regular expression matches");
  run->add_option("--groups", groups, "some of transfer,depth,errors,connection");
  run->add_flag("--quick", quick, "fewer transfers, smaller ones");
  run->add_flag("--list", list, "name the cells with a siw peer, run none");
  CLI11_PARSE(app, argc, argv);
  try {
    if (*serve) return serve_command(host, port);
    // Ends that were killed or have finished leave no zombies, and a peer that goes raises no signal.
    ::signal(SIGCHLD, SIG_IGN);
    report out(only, list);
    // The list is that of a siw peer, and needs none.
    const std::string here = list ? host : local_address(connect_to(host, port));
    const std::string provider = list ? "siw" : remote_end(connect_to(host, port), "peer").description().provider;
    party ours("iwarp", "iwarp", here, fork_an_end);
    party peer(provider == "iwarp" ? "peer" : provider, provider, host, [&] { return connect_to(host, port); });
    const auto chosen = [&](const char* group) {
      return ("," + groups + ",").find(std::string(",") + group + ",") != std::string::npos;
    };
    if (chosen("transfer")) transfer_cells(ours, peer, out, quick);
    if (chosen("depth")) depth_cells(ours, peer, out);
    if (chosen("errors")) error_cells(ours, peer, out);
    if (chosen("connection")) connection_cells(ours, peer, out);
    return out.finish();
  } catch (const party_lost& problem) {
    std::cerr << app.get_name() << ": " << problem.what << std::endl;
    return 1;
  } catch (const std::exception& problem) {
    std::cerr << app.get_name() << ": " << problem.what() << std::endl;
    return 1;
  }
}
