// iwarp-copy: copies files by RDMA, straight between the mapped files of two processes.
#include "tools/common/failure.hpp"
#include "tools/common/options.hpp"
#include "tools/common/stop.hpp"
#include "tools/copy/commands.hpp"

namespace {

using namespace iwarp;
using namespace iwarp::tools;

// "ADDR[:PORT][/NAME]".
void add_remote_file(CLI::App& app, copy::copy_command& command, bool name_required) {
  const auto take = [&command, name_required](const std::string& text) {
    const auto slash = text.find('/');
    const std::string address = text.substr(0, slash);
    auto where = tcp_glue::parse_host_port(address, copy::default_port);
    if (!where) throw CLI::ValidationError("SERVER", "\"" + address + "\": " + tools::describe(where.error()));
    command.where = *std::move(where);
    if (slash != std::string::npos) command.name = text.substr(slash + 1);
    if (name_required && command.name.empty())
      throw CLI::ValidationError("SERVER", "\"" + text + "\" names no file: expected ADDR[:PORT]/NAME");
    if (command.name.size() > copy::max_name)
      throw CLI::ValidationError("SERVER", "the name of the file is longer than 1024 octets");
  };
  app.add_option_function<std::string>(
         "SERVER", take,
         name_required ? "The server and the file there. Default port: 7175"
                       : "The server and the file's name there. Default port: 7175; default name: that of FILE")
      ->type_name(name_required ? "ADDR[:PORT]/NAME" : "ADDR[:PORT][/NAME]")
      ->required();
}

int program(int argc, char** argv) {
  CLI::App app(
      "Copies files by RDMA: data goes straight between the mapped files of client and server, by RDMA Write and\n"
      "RDMA Read, and a SHA-256 over the whole file is compared at the end. A file appears under its name only when "
      "it\n"
      "is whole.",
      "iwarp-copy");
  copy::serve_command serving;
  auto* serve = app.add_subcommand("serve",
                                   "Give and take the files below a folder, to any number of clients at once.\n"
                                   "There is no authentication: who reaches the port may read and write there");
  serve
      ->add_option("DIR", serving.folder,
                   "The folder. Names below it may have subfolders that exist; symbolic links are "
                   "not followed")
      ->type_name("")
      ->required();
  serving.options.where.port = copy::default_port;
  add_address(*serve, "--listen", serving.options.where, copy::default_port,
              "Where to listen. Port 0: one that is free. Default: every address, port 7175");
  add_number(*serve, "-C,--count", serving.options.connections, 1, 1'000'000'000,
             "Serve so many connections, then exit. Default: until SIGINT or SIGTERM");
  serve->add_flag("--read-only", serving.read_only, "Take no files");
  serving.flags.add_to_server(*serve);
  serving.options.domains = 2;

  copy::copy_command putting{.op = copy::operation::put, .file = {}, .where = {}, .name = {}, .flags = {}};
  auto* put = app.add_subcommand("put", "Copy a file to a server, in place of one with that name");
  put->add_option("FILE", putting.file, "The file")->type_name("")->required();
  add_remote_file(*put, putting, false);
  putting.flags.add_to_client(*put);

  copy::copy_command getting{.op = copy::operation::get, .file = {}, .where = {}, .name = {}, .flags = {}};
  auto* get = app.add_subcommand("get", "Copy a file from a server");
  add_remote_file(*get, getting, true);
  get->add_option("FILE", getting.file,
                  "The file to write, or a folder to write it to. Default: the name's last "
                  "component, in the current folder")
      ->type_name("");
  getting.flags.add_to_client(*get);

  prepare(app,
          "  iwarp-copy serve /srv/pub                     serve a folder on port 7175 of every address\n"
          "  iwarp-copy put big.iso 192.0.2.1              to /srv/pub/big.iso there\n"
          "  iwarp-copy put big.iso 192.0.2.1/new.iso      under another name\n"
          "  iwarp-copy get '[2001:db8::1]:7175/big.iso'   to ./big.iso\n");
  if (const auto code = parse(app, argc, argv)) return *code;
  stop_on_signals();
  if (*serve) return copy::run(serving);
  return copy::run(*put ? putting : getting);
}

}  // namespace

int main(int argc, char** argv) {
  return iwarp::tools::run_program("iwarp-copy", [&] { return program(argc, argv); });
}
