#include "tools/dump/replay_keys.hpp"

#include <algorithm>
#include <array>

#include "ddp/header.hpp"

namespace iwarp::dump {
namespace {

constexpr std::size_t tag_at = 2;  // of a tagged header
constexpr std::size_t offset_at = 6;
constexpr std::size_t source_tag_at = 18 + 16;  // of a Read Request
constexpr std::size_t source_offset_at = 18 + 20;

rdmap::opcode opcode_of(const std::vector<std::byte>& ulpdu) {
  return rdmap::opcode_of(std::to_integer<std::uint8_t>(ulpdu[1]));
}

template <class T>
std::array<std::byte, sizeof(T)> big_endian(T value) {
  std::array<std::byte, sizeof(T)> out{};
  store_be<T>(out, value);
  return out;
}

/// All places of `what` in `where`.
std::vector<std::size_t> places_of(const_bytes what, const_bytes where) {
  std::vector<std::size_t> found;
  for (auto at = where.begin();; ++at) {
    at = std::search(at, where.end(), what.begin(), what.end());
    if (at == where.end()) return found;
    found.push_back(static_cast<std::size_t>(at - where.begin()));
  }
}

}  // namespace

replay_keys::replay_keys(const replay_script& script) {
  for (const initiator_act& a : script.acts()) {
    if (a.ulpdu.size() < ddp::tagged_header_size) continue;
    const const_bytes in(a.ulpdu);
    if (ddp::is_tagged(in[0]) && opcode_of(a.ulpdu) == rdmap::opcode::write) {
      used_.try_emplace(load_be<std::uint32_t>(in.subspan<tag_at, 4>()),
                        load_be<std::uint64_t>(in.subspan<offset_at, 8>()));
    } else if (!ddp::is_tagged(in[0]) && opcode_of(a.ulpdu) == rdmap::opcode::read_request &&
               in.size() >= source_offset_at + 8) {
      used_.try_emplace(load_be<std::uint32_t>(in.subspan<source_tag_at, 4>()),
                        load_be<std::uint64_t>(in.subspan<source_offset_at, 8>()));
    }
  }
}

std::optional<std::size_t> replay_keys::learn(const heard_message& recorded, const heard_message& live) {
  if (recorded.read && live.read) {
    // The sink is the responder's own; where it reads from is ours, and must be the same.
    keys_[recorded.read->sink.value] = {live.read->sink, recorded.read->sink_offset, live.read->sink_offset};
    const bool same = recorded.read->source == live.read->source && recorded.read->size == live.read->size &&
                      recorded.read->source_offset == live.read->source_offset;
    return same ? std::nullopt : std::optional<std::size_t>(0);
  }
  std::vector<bool> is_key(recorded.payload.size());
  const const_bytes was(recorded.payload);
  const const_bytes is(live.payload);
  if (rdmap::is_send(recorded.op)) {
    for (const auto& [tag, offset] : used_) {
      const auto tag_octets = big_endian(tag);
      for (const std::size_t at : places_of(tag_octets, was)) {
        key k{{load_be<std::uint32_t>(is.subspan(at).first<4>())}, offset, offset};
        std::fill_n(is_key.begin() + static_cast<std::ptrdiff_t>(at), 4, true);
        const auto offset_octets = big_endian(offset);
        for (const std::size_t there : places_of(offset_octets, was)) {
          k.live_offset = load_be<std::uint64_t>(is.subspan(there).first<8>());
          std::fill_n(is_key.begin() + static_cast<std::ptrdiff_t>(there), 8, true);
        }
        keys_[tag] = k;
      }
    }
  }
  for (std::size_t i = 0; i != was.size(); ++i) {
    if (was[i] != is[i] && !is_key[i]) return i;
  }
  return std::nullopt;
}

void replay_keys::translate(mutable_bytes tag, mutable_bytes offset) const {
  const auto found = keys_.find(load_be<std::uint32_t>(tag.first<4>()));
  if (found == keys_.end()) return;
  const key& k = found->second;
  store_be(tag.first<4>(), k.live.value);
  const auto was = load_be<std::uint64_t>(offset.first<8>());
  store_be(offset.first<8>(), was - k.recorded_offset + k.live_offset);
}

void replay_keys::translate(std::vector<std::byte>& ulpdu) const {
  if (ulpdu.size() < ddp::tagged_header_size) return;
  const mutable_bytes out(ulpdu);
  if (ddp::is_tagged(out[0])) {
    translate(out.subspan(tag_at, 4), out.subspan(offset_at, 8));
  } else if (opcode_of(ulpdu) == rdmap::opcode::read_request && ulpdu.size() >= source_offset_at + 8) {
    translate(out.subspan(source_tag_at, 4), out.subspan(source_offset_at, 8));
  }
}

}  // namespace iwarp::dump
