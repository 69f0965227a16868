// Internal to the drop-in.
// The connection manager's objects: ids, event channels, events.
// Threading: an id's fields that events touch are under the stack's mutex. Time: none.  I/O: none.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "verbs/compat/handles.hpp"

namespace iwarp::compat {

struct cm_id;

struct cm_event : rdma_cm_event {
  cm_event() : rdma_cm_event{} {}
  cm_id* counted = nullptr;  ///< whose destruction waits until this is acknowledged
  std::array<std::byte, 256> data{};
};

struct cm_channel : rdma_event_channel {
  cm_channel() : rdma_event_channel{} { fd = events.descriptor(); }
  pollable_queue<std::unique_ptr<cm_event>> events;

  static cm_channel& of(rdma_event_channel* channel) noexcept { return *static_cast<cm_channel*>(channel); }
};

/// librdmacm's rsockets run on the public calls, and look behind the public part of an id for two things: the greatest
/// queue depth, and whether calls on it wait. So these stand where librdmacm 44 has them.
struct librdmacm_device {
  void* before[7] = {};
  std::uint64_t guid = 0;
  int ports = 1, users = 1;
  int max_qpsize = 0;
};
struct librdmacm_id : rdma_cm_id {
  librdmacm_id() : rdma_cm_id{} {}
  librdmacm_device* limits = nullptr;
  void* connect = nullptr;
  std::size_t connect_len = 0;
  int events_completed = 0;
  int connect_error = 0;
  int sync = 0;
};

struct cm_id final : librdmacm_id, event_target {
  explicit cm_id(rdma_port_space space);
  ~cm_id();
  /// Events of its listener.
  void on_event(const verbs::connection_event& event) override;
  /// Events of its queue pair.
  void on_connection(const verbs::connection_event& event);
  /// Its queue pair is going, and a connection with it.
  void forget_qp();

  void tell(rdma_cm_event_type type, int status = 0);
  void tell(std::unique_ptr<cm_event> event);
  /// Its address is that of `where`, or of none.
  void bind_to(device* where);
  /// The queue pair that carries its connection: its own, or the one with this number. Null with errno.
  qp_handle* find_qp(const rdma_conn_param* param);

  static cm_id& of(rdma_cm_id* id) noexcept { return *static_cast<cm_id*>(id); }

  stack* home = nullptr;
  qp_handle* carried_by = nullptr;
  verbs::listener listener;
  std::uint64_t listener_key = 0;
  verbs::connection_request request;
  std::uint8_t offered_depth = 0, offered_resources = 0;  // of the peer's Request
  int reservation = -1;                                   // a socket that holds the port between bind and listen
  bool bound = false;
  bool v6_only = false;
  bool resolved = false;
  bool connected = false;  // and nobody was told of its end
  // rdma_create_ep()
  ibv_pd* ep_pd = nullptr;
  std::optional<ibv_qp_init_attr> ep_qp;
  // rdma_destroy_id() waits until what was taken is acknowledged.
  std::mutex acknowledging;
  pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t acknowledged_mutex = PTHREAD_MUTEX_INITIALIZER;
  unsigned taken = 0, acks = 0;
};

/// For ids whose calls wait: the event that ends the call, kept in id->event. -1 with errno when it failed.
int complete(cm_id& id);

[[nodiscard]] std::optional<verbs::endpoint> endpoint_of(const sockaddr& address);
void store(const verbs::endpoint& from, sockaddr_storage& into);
[[nodiscard]] socklen_t size_of(const sockaddr& address) noexcept;

}  // namespace iwarp::compat
