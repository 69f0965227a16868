#include "tests/dump/collected.hpp"

#include <fmt/format.h>

#include "mpa/crc32c.hpp"

namespace iwarp::dump_test {

void collected::on(const dump::mpa_event& e) {
  frames.push_back(e);
  of(e.at).push_back(fmt::format("mpa {} at {} rev {} {} octets", e.kind == mpa::frame_kind::request, e.at.offset,
                                 e.revision, e.private_data.size()));
}

void collected::on(const dump::fpdu_event& e) {
  fpdus.push_back(e);
  payloads.emplace_back(e.payload.begin(), e.payload.end());
  of(e.at).push_back(fmt::format("fpdu {} at {} ulpdu {} {} {:x}:{:x} {}:{}:{} {} {} {:08x}", dump::short_name(e.op),
                                 e.at.offset, e.ulpdu_size, e.last, e.tag.value, e.tagged_offset, e.queue, e.sequence,
                                 e.offset, e.payload_size, dump::name_of(e.crc), mpa::crc32c(e.payload)));
}

void collected::on(const dump::message_event& e) {
  messages.push_back(e);
  of(e.at).push_back(fmt::format("message {} at {} len {} segments {} cut {} unfinished {} bad {}",
                                 dump::short_name(e.op), e.at.offset, e.length, e.segments, e.cut, e.unfinished,
                                 e.crc_bad));
}

void collected::on(const dump::problem_event& e) {
  problems.push_back(e);
  of(e.at).push_back(fmt::format("problem {} at {} {}", e.rule, e.at.offset, e.text));
}

std::string collected::rules() const {
  std::string text;
  for (const auto& p : problems) text += (text.empty() ? "" : " ") + std::string(p.rule);
  return text;
}

std::string collected::operations() const {
  std::string text;
  for (const auto& m : messages) text += (text.empty() ? "" : " ") + std::string(dump::short_name(m.op));
  return text;
}

std::vector<std::string> collected::lines() const {
  std::vector<std::string> all = from_client_;
  all.insert(all.end(), from_server_.begin(), from_server_.end());
  return all;
}

collected analyse(const std::vector<frame>& frames, int link_type, dump::analyser_options options) {
  collected out;
  dump::analyser analyser(std::move(options), out);
  std::uint64_t number = 0;
  for (const frame& f : frames) {
    analyser.add(
        {.frame = {.number = ++number, .time = f.time}, .octets = f.data, .length = f.length, .link_type = link_type});
  }
  analyser.finish();
  return out;
}

}  // namespace iwarp::dump_test
