// JSON values as text that people may read: plain decimal numbers where Boost.JSON's own serializer writes 2.97E0,
// and indentation when asked for.
//
// Layer: relay/admin; pure.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace deltarelay::relay::admin {

/// `indent` spaces a level; 0: all on one line. Numbers that JSON cannot say (infinity, not-a-number) become null.
[[nodiscard]] std::string json_text(const boost::json::value& value, int indent);

}  // namespace deltarelay::relay::admin
