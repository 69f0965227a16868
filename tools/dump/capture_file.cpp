#include "tools/dump/capture_file.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <optional>
#include <utility>

#include "tools/common/failure.hpp"
#include "tools/dump/octet_source.hpp"

namespace iwarp::dump {

struct capture_file::state {
  ~state() {
    if (filtered) pcap_freecode(&filter);
    if (pcap) pcap_close(pcap);
  }
  std::optional<octet_source> source;  // outlives pcap, which closes its stream
  pcap_t* pcap = nullptr;
  bpf_program filter{};
  bool filtered = false;
  int link_type = 0;
};

capture_file::capture_file(const std::string& path, const std::string& filter)
    : state_(std::make_unique<state>()), path_(path == "-" ? "standard input" : path) {
  state_->source.emplace(path);
  begin(state_->source->take(), filter);
}

capture_file::capture_file(std::FILE* stream, std::string name, const std::string& filter)
    : state_(std::make_unique<state>()), path_(std::move(name)) {
  begin(stream, filter);
}

void capture_file::begin(std::FILE* stream, const std::string& filter) {
  state& s = *state_;
  char reason[PCAP_ERRBUF_SIZE] = {};
  s.pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason);
  if (!s.pcap) {
    std::fclose(stream);  // libpcap leaves it open when it fails
    const bool damaged = s.source && !s.source->damage().empty();
    throw tools::failure(fmt::format("{}: {}", path_, damaged ? s.source->damage() : reason));
  }
  s.link_type = pcap_datalink(s.pcap);
  if (!filter.empty()) {
    if (pcap_compile(s.pcap, &s.filter, filter.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
      throw tools::failure(fmt::format("filter \"{}\": {}", filter, pcap_geterr(s.pcap)));
    }
    s.filtered = true;
  }
}

capture_file::~capture_file() = default;

int capture_file::link_type() const noexcept { return state_->link_type; }

bool capture_file::next(packet& out) {
  state& s = *state_;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  for (;;) {
    const int got = pcap_next_ex(s.pcap, &header, &data);
    if (got != 1) {
      if (got == PCAP_ERROR) damage_ = fmt::format("{}: {}", path_, pcap_geterr(s.pcap));
      if (s.source && !s.source->damage().empty()) damage_ = fmt::format("{}: {}", path_, s.source->damage());
      return false;
    }
    ++number_;
    if (s.filtered && pcap_offline_filter(&s.filter, header, data) == 0) continue;
    out.frame = {.number = number_, .time = header->ts.tv_sec * std::int64_t{1'000'000'000} + header->ts.tv_usec};
    out.octets = as_const_bytes(data, header->caplen);
    out.length = header->len;
    out.link_type = s.link_type;
    return true;
  }
}

}  // namespace iwarp::dump
