// Links: made, kept, fed, ended.
#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "codec/payloads.hpp"
#include "relay/shell/shell.hpp"

namespace deltarelay::relay {
namespace {

/// What belongs to block sync and must keep its order behind the manifest, or is large: the data lane, by way of the
/// outbox.
bool goes_by_outbox(const Message& message) {
  return std::holds_alternative<SyncManifest>(message) || std::holds_alternative<SyncDigests>(message) ||
         std::holds_alternative<SyncBlocks>(message) || std::holds_alternative<SyncFile>(message);
}

}  // namespace

net::LinkEnvironment Shell::link_environment() {
  net::LinkEnvironment environment;
  environment.io = io_.get_executor();
  environment.handlers = core_;
  environment.cpu = cpu_.get_executor();
  environment.budget = &budget_;
  environment.tasks = &tasks_;
  environment.check = net::signed_records_of(parts_.store->options().mesh, parts_.store->verifier());
  environment.config.dead_after = parts_.config.timeouts.dead;
  environment.config.progress_after = parts_.config.timeouts.progress;
  return environment;
}

void Shell::add_link(std::shared_ptr<net::Link> link, bool to_parent) {
  if (stopping_) return link->close("the daemon is stopping");
  const LinkId id{++links_made_};
  LinkEntry entry;
  entry.link = link;
  entry.outbox =
      std::make_shared<Outbox>(link, readers_.get_executor(), core_, parts_.config.limits.child_window_bytes);
  entry.peer = link->peer().node;
  entry.to_parent = to_parent;
  const std::string peer = entry.peer;
  links_.emplace(id, std::move(entry));
  net::LinkHandlers handlers;
  handlers.on_record = [this, id](codec::RecordPtr record, net::ByteHold hold) {
    record_arrived(id, std::move(record), std::move(hold));
  };
  handlers.on_rejected = [this, id](const codec::RecordHeader&, codec::error_code why) {
    handle(FrameRejected{id, why.message()});
  };
  handlers.on_sent = [this, id](std::uint64_t bytes, net::Lane lane) {
    if (auto found = links_.find(id); found != links_.end() && lane == net::Lane::data)
      found->second.outbox->on_sent(bytes);
  };
  handlers.on_end = [this, id](const net::LinkEnd& end) { link_ended(id, end); };
  link->start(std::move(handlers));
  perform(Note{Note::Level::info, "LINK_UP",
               fmt::format("{} {} at {}", to_parent ? "parent" : "child", peer, link->remote_address())});
  handle(LinkUp{id, peer, to_parent});
}

void Shell::connected(const ConnectTo& target, net::ConnectResult result) {
  if (!result.link) return handle(ConnectFailed{target.peer, std::string(net::code(result.refusal)), result.detail});
  const net::Role role = result.link->peer().role;
  if (role != net::Role::root && role != net::Role::relay) {
    result.link->close("not a parent");
    return handle(
        ConnectFailed{target.peer, "wrong_role", "its certificate is of an " + std::string(net::to_string(role))});
  }
  add_link(std::move(result.link), true);
}

void Shell::record_arrived(LinkId id, codec::RecordPtr record, net::ByteHold hold) {
  if (record->header.is_log_record()) {
    const codec::Record* key = record.get();
    holds_.emplace(key, std::move(hold));
    handle(FrameReceived{id, std::move(record)});
    holds_.erase(key);  // what was appended took it along
    return;
  }
  auto message = decode_message(*record);
  if (message) {
    // What it sets off on other threads keeps a share: a parent that sends faster than the disk takes is not read.
    message_hold_ = std::make_shared<net::ByteHold>(std::move(hold));
    handle(MessageArrived{id, std::move(*message)});
    message_hold_ = std::make_shared<net::ByteHold>();
    return;
  }
  if (message.error() == codec::errc::unknown_record_type) return;  // of a newer release
  perform(CloseLink{id, "PROTOCOL", "a message does not decode: " + message.error().message()});
}

void Shell::link_ended(LinkId id, const net::LinkEnd& end) {
  auto found = links_.find(id);
  if (found == links_.end()) return;
  found->second.outbox->stop();
  perform(Note{Note::Level::info, "LINK_DOWN",
               fmt::format("{} {}: {} ({})", found->second.to_parent ? "parent" : "child", found->second.peer,
                           net::code(end.why), end.detail)});
  links_.erase(found);
  if (stopping_ && links_.empty() && !std::exchange(links_gone_told_, true)) links_gone_.set_value();
  handle(LinkClosed{id, std::string(net::code(end.why)), end.detail});
}

void Shell::send_later(LinkId link, Outbox::Job job, Outbox::Sent sent) {
  if (auto found = links_.find(link); found != links_.end())
    found->second.outbox->push(std::move(job), std::move(sent));
}

void Shell::perform(const ConnectTo& action) {
  net::ConnectConfig connect;
  connect.handshake_within = parts_.config.timeouts.handshake;
  net::async_connect(link_environment(), parts_.tls, net::ConnectTarget{action.peer, action.address}, connect,
                     [this, action](net::ConnectResult result) { connected(action, std::move(result)); });
}

void Shell::perform(const CloseLink& action) {
  if (auto found = links_.find(action.link); found != links_.end())
    found->second.link->close(action.code + ": " + action.text);
}

void Shell::perform(const SendMessage& action) {
  auto found = links_.find(action.link);
  if (found == links_.end()) return;
  codec::RecordPtr record = encode_message(action.message, parts_.store->options().mesh);
  if (!goes_by_outbox(action.message)) return found->second.link->send(std::move(record), net::Lane::control);
  found->second.outbox->push([record] { return std::vector{record}; });
}

void Shell::perform(const SendRecord& action) {
  const RefitEntry* refit = node_->log().find(action.position.version);
  const std::uint64_t bytes = refit != nullptr ? refit->record_bytes[codec::raw(action.position.sequence)] : 0;
  send_later(
      action.link,
      [this, position = action.position]() -> std::vector<codec::RecordPtr> {
        auto record = parts_.store->log().read(position.version, StripeId{0}, position.sequence);
        if (record) return {*record};
        // The child finds the gap and asks again; a refit that was dropped meanwhile it gets by block sync.
        if (record.error().code != store_errc::not_in_log)
          note(Note::Level::error, "LOG_UNREADABLE", record.error().text());
        return {};
      },
      [this, link = action.link, bytes](std::uint64_t) {
        handle(RecordSent{link, bytes});
      });
}

void Shell::perform(const SendSyncDigests& action) {
  const auto digests = sync_digests(*parts_.store);
  if (!digests) return;
  for (std::size_t first = 0; first < digests->size(); first += sync_digests_per_message) {
    send_later(action.link, [this, digests, first] {
      SyncDigests message;
      message.first = first;
      const std::size_t count = std::min(sync_digests_per_message, digests->size() - first);
      message.digests.assign(digests->begin() + static_cast<std::ptrdiff_t>(first),
                             digests->begin() + static_cast<std::ptrdiff_t>(first + count));
      return std::vector{encode_message(message, parts_.store->options().mesh)};
    });
  }
}

void Shell::perform(const SendSyncFiles& action) {
  on_state([this, link = action.link] {
    if (sync_receiver_.waits_for_files()) return children_without_files_.push_back(link);
    on_core([this, link] { send_files(link); });
  });
}

void Shell::send_files(LinkId link) {
  const codec::RecordPtr& end_record =
      node_->sync().manifest_holds() ? node_->sync().end_record() : node_->image().end_record;
  auto end = end_record ? codec::EndPayload::decode(end_record->payload())
                        : codec::Result<codec::EndPayload>(codec::EndPayload{});
  if (!end) return;
  for (const codec::CompanionFile& named : end->companions) {
    send_later(link, [this, named]() -> std::vector<codec::RecordPtr> {
      auto file = read_sync_file(*parts_.store, named);
      if (!file) return {};
      return {encode_message(*file, parts_.store->options().mesh)};
    });
  }
}

void Shell::perform(const SendSyncBlocks& action) {
  auto unavailable = std::make_shared<std::vector<std::uint64_t>>();
  send_later(
      action.link,
      [this, ordinals = action.ordinals, unavailable] {
        ServedBlocks served = read_sync_blocks(*parts_.store, ordinals);
        *unavailable = std::move(served.unavailable);
        std::vector<codec::RecordPtr> records;
        for (const SyncBlocks& message : served.messages)
          records.push_back(encode_message(message, parts_.store->options().mesh));
        return records;
      },
      [this, link = action.link, unavailable](std::uint64_t) {
        handle(SyncBlocksSent{link, *unavailable});
      });
}

}  // namespace deltarelay::relay
