// The known name that a mistyped word was probably meant to be: for keys of files and for words of command lines.
//
// Layer: config; pure functions. A hint is only given when few edits lead from the one to the other: a wrong hint costs
// more than none, because it is read as knowledge.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deltarelay::config {

/// The one of `known` that `word` was probably meant to be; empty if none is near. Refers to the characters of `known`.
[[nodiscard]] std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& known);
/// ` (did you mean "NAME"?)`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace deltarelay::config
