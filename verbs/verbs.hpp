// Public API.
// Everything of the native API but the Asio-style operations (verbs/async.hpp).
#pragma once

#include "verbs/access.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/context.hpp"
#include "verbs/error.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/listener.hpp"
#include "verbs/memory.hpp"
#include "verbs/queue_pair.hpp"
#include "verbs/shared_receive_queue.hpp"
#include "verbs/work_request.hpp"
