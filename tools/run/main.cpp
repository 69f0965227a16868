// iwarp-run: starts a program with libibverbs' and librdmacm's calls answered by this stack.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/common/failure.hpp"
#include "tools/common/options.hpp"
#include "tools/run/program_file.hpp"
#include "verbs/compat/device_list.hpp"
#include "verbs/compat/settings.hpp"

namespace {

using namespace iwarp;
using namespace iwarp::tools;

/// Beside this program where it was built, in the library folder where it was installed.
std::string find_library() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  for (const char* relative : {"../verbs/compat", "../" IWARP_LIBDIR}) {
    const auto candidate = (self.parent_path() / relative / "libiwarp-compat.so").lexically_normal();
    if (std::filesystem::exists(candidate)) return candidate;
  }
  throw failure(fmt::format("libiwarp-compat.so is neither in the library folder nor in the build folder beside {}",
                            self.string()));
}

void set(const char* name, const std::string& value) {
  if (::setenv(name, value.c_str(), 1) != 0)
    throw failure(fmt::format("cannot set {}: {}", name, std::strerror(errno)));
}

int list_devices() {
  std::vector<std::string> unknown;
  const auto options = compat::read_settings();
  if (!options.problem.empty()) throw failure(options.problem);
  const auto all = compat::find_addresses(options, &unknown);
  for (const auto& name : unknown)
    throw failure(fmt::format("no interface that is up has the address or name {}", name));
  if (all.empty()) throw failure("no interface is up that has an address");
  fmt::print("{:<10} {:<40} {:<16} {}\n", "device", "address", "interface", "mtu");
  for (const auto& a : all) fmt::print("{:<10} {:<40} {:<16} {}\n", a.device, a.text, a.interface, a.mtu);
  return 0;
}

int program(int argc, char** argv) {
  CLI::App app(
      "Runs a program that uses libibverbs and librdmacm, unchanged, over this stack: no RDMA hardware, no kernel "
      "module,\n"
      "no root. Each local address becomes an iWARP device.",
      "iwarp-run");
  bool list = false;
  std::string addresses, record;
  bool crc = true, markers = false;
  std::uint64_t revision = 2, domains = 1;
  bool terminate = false;
  std::vector<std::string> command;
  app.add_flag("--list", list, "Print the devices a program would see, and exit");
  app.add_option("--addresses", addresses,
                 "Offer these alone: addresses or interfaces, with commas. Default: all that are up")
      ->type_name("A[,A...]");
  auto* crc_option = add_on_off(app, "--crc", crc, "Ask for CRC32c. Default: on");
  auto* markers_option = add_on_off(app, "--markers", markers, "Ask peers to insert markers. Default: off");
  auto* revision_option =
      add_number(app, "--mpa-rev", revision, 1, 2, "MPA revision to connect with, and highest to accept. Default: 2");
  auto* domains_option =
      add_number(app, "--domains", domains, 1, 64, "Locks and threads that connections spread over. Default: 1");
  app.add_flag("--terminate-without-receive", terminate,
               "End a connection whose peer sends while no receive is posted, instead of letting it wait");
  app.add_option("--record", record, "Record all connections to this pcap file; %p becomes the process id")
      ->type_name("FILE");
  app.add_option("PROGRAM", command, "The program and its arguments, behind --");
  prepare(app,
          "  iwarp-run --list\n"
          "  iwarp-run -- rping -s -v                          a server ...\n"
          "  iwarp-run -- rping -c -a 127.0.0.1 -C 10 -v       ... and its client\n"
          "  iwarp-run --record %p.pcap -- ib_write_bw -R      its traffic for iwarp-dump and Wireshark\n");
  if (const auto code = parse(app, argc, argv)) return *code;
  if (!addresses.empty()) set(compat::addresses_variable, addresses);
  if (*crc_option) set(compat::crc_variable, crc ? "on" : "off");
  if (*markers_option) set(compat::markers_variable, markers ? "on" : "off");
  if (*revision_option) set(compat::revision_variable, std::to_string(revision));
  if (*domains_option) set(compat::domains_variable, std::to_string(domains));
  if (terminate) set(compat::shortage_variable, "terminate");
  if (!record.empty()) set("IWARP_PCAP", record);
  if (list) return list_devices();
  if (command.empty()) {
    fmt::print(stderr, "iwarp-run: name the program to run, behind --\n");
    return 2;
  }
  const std::string path = find_program(command.front());
  require_preload(path);
  const char* before = std::getenv("LD_PRELOAD");
  std::string preload = find_library();
  if (before != nullptr && *before != '\0') preload += std::string(":") + before;
  set("LD_PRELOAD", preload);
  std::vector<char*> arguments;
  for (auto& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  throw failure(fmt::format("cannot run {}: {}", path, std::strerror(errno)));
}

}  // namespace

int main(int argc, char** argv) {
  return iwarp::tools::run_program("iwarp-run", [&] { return program(argc, argv); });
}
