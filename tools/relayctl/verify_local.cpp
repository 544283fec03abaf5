#include "tools/relayctl/verify_local.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "codec/limits.hpp"
#include "relay/store/verify.hpp"
#include "tools/relayctl/context.hpp"
#include "tools/relayctl/failures.hpp"
#include "tools/relayctl/humanize.hpp"
#include "tools/relayctl/table.hpp"

namespace deltarelay::relayctl {
namespace {

namespace json = boost::json;

json::object report_json(const std::filesystem::path& dir, const relay::VerifyReport& report, bool compared,
                         bool deep) {
  json::object out;
  out["schema"] = "deltarelay.verify-local/1";
  out["directory"] = dir.string();
  out["deep"] = deep;
  out["compared"] = compared;
  out["ok"] = report.ok();
  if (compared) out["version"] = std::to_string(codec::raw(report.version));
  out["blocks"] = report.blocks;
  out["image_bytes"] = report.bytes;
  if (report.stated) out["stated_digest"] = codec::to_hex(*report.stated);
  if (report.computed) out["computed_digest"] = codec::to_hex(*report.computed);
  out["differing_blocks"] = report.differing.size();
  json::array findings;
  for (const std::string& finding : report.findings) findings.emplace_back(finding);
  out["findings"] = std::move(findings);
  return out;
}

std::string report_text(const Context& context, const std::filesystem::path& dir, const relay::VerifyReport& report,
                        bool compared, bool deep) {
  Table table({{""}, {""}});
  table.add({"image",
             fmt::format("{}, {} in {} blocks", dir.string(), human_bytes(report.bytes), human_count(report.blocks))});
  if (compared) table.add({"version", std::to_string(codec::raw(report.version))});
  if (report.stated) table.add({"stated", codec::to_hex(*report.stated)});
  if (report.computed) table.add({"computed", codec::to_hex(*report.computed)});
  std::string result;
  if (!report.ok())
    result = context.paint(Style::bad, "damaged");
  else if (!compared)
    result = deep ? "readable; no ledger to compare with (--state)" : "headers are valid; nothing else was looked at";
  else
    result = context.paint(Style::good, deep ? "every block is as stated" : "headers are as stated (--deep reads all)");
  table.add({"result", result});
  return table.text();
}

}  // namespace

int verify_local(const Context& context, const std::filesystem::path& dir,
                 const std::optional<std::filesystem::path>& state, bool deep) {
  constexpr auto block_bytes = static_cast<std::uint32_t>(codec::block_bytes_default);
  auto report = relay::verify_image(dir, state, deep, block_bytes);
  if (!report) return fail(context, "cannot verify " + dir.string(), report.error());
  const bool compared = state.has_value();
  if (compared && codec::raw(report->version) == 0)
    return context.fail(ExitCode::precondition, "cannot verify " + dir.string(),
                        "the ledger in " + state->string() + " states no committed version",
                        "the state directory of this image's relayd, or without --state");
  if (context.json())
    context.print(json::serialize(report_json(dir, *report, compared, deep)) + "\n");
  else if (!context.quiet)
    context.print(report_text(context, dir, *report, compared, deep));
  if (report->ok()) return to_int(ExitCode::ok);
  for (const std::string& finding : report->findings)
    context.fail(ExitCode::failed, dir.string(), finding, "restart its relayd, which hashes the image and fetches what differs from its parent");
  return to_int(ExitCode::failed);
}

}  // namespace deltarelay::relayctl
