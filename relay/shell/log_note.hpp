// A Note as one line of the daemon's log: the code first, for whoever searches for it.
#pragma once

#include <spdlog/spdlog.h>

#include "relay/core/actions.hpp"

namespace deltarelay::relay {

inline void log_note(const Note& note) {
  constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                  spdlog::level::err};
  spdlog::log(levels[static_cast<std::size_t>(note.level)], "{} {}", note.code, note.text);
}

}  // namespace deltarelay::relay
