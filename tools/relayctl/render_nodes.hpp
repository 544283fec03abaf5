// `relayctl nodes` and `relayctl node NAME`. Pure; under golden tests.
#pragma once

#include <string>

#include "relay/admin/documents.hpp"
#include "tools/relayctl/context.hpp"

namespace deltarelay::relayctl {

/// A row a node; `-o wide` adds role, rank, planned parent, frames and bytes.
[[nodiscard]] std::string nodes_text(const Context& context, const relay::admin::NodesDocument& document);
/// The page of one node with its children. `row` is one of the document's.
[[nodiscard]] std::string node_text(const Context& context, const relay::admin::NodesDocument& document,
                                    const relay::admin::NodeRow& row);

}  // namespace deltarelay::relayctl
