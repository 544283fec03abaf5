// A plan and its prediction as text and as JSON. Pure; under golden tests.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "config/findings.hpp"
#include "topology/cost.hpp"
#include "topology/model.hpp"
#include "topology/plan.hpp"

namespace deltarelay::relayctl {

/// What the plan is for and how it fares: the refit, its time against the bound, and each region with what limits it.
[[nodiscard]] std::string plan_summary(const topology::Model& model, const topology::Plan& plan,
                                       const topology::RefitSize& refit, const topology::Prediction& prediction);

/// Schema deltarelay.plan/1: identity of the plan, nodes in rank order, prediction.
[[nodiscard]] boost::json::object plan_json(const topology::Model& model, const topology::Plan& plan,
                                            const topology::RefitSize& refit, const topology::Prediction& prediction);

/// Schema deltarelay.findings/1: `valid`, and the findings with their places.
[[nodiscard]] boost::json::object findings_json(const config::Findings& findings);

}  // namespace deltarelay::relayctl
