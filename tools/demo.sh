#!/usr/bin/env bash
# Shows the whole product on this machine: builds it, makes a fleet of a root and six relays in three regions on loopback, fills the
# empty relays, refits them three times (1, 3 and 5 % changed), proves every host's bytes, and prints times and sizes.
#
#   tools/demo.sh [--size 256MiB] [--keep] [--bin DIR]
#     --keep  leaves the fleet running and says how to use and stop it
#     --bin   takes relayd and relayctl from DIR and builds nothing
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

size=256MiB keep=no bin=''
while (($#)); do
  case $1 in
    --size) size=${2:?--size needs a value like 256MiB}; shift 2 ;;
    --keep) keep=yes; shift ;;
    --bin) bin=${2:?--bin needs a directory}; shift 2 ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "error: unknown option $1: demo.sh takes --size, --keep and --bin. Try: tools/demo.sh --help" >&2; exit 2 ;;
  esac
done

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi
say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
fail() { echo "error: $*" >&2; exit 1; }

# --- the fleet: who is where. Each host has a loopback address of its own in a net picked at random, so demos do not meet.
net=127.$((RANDOM % 200 + 20)).$((RANDOM % 250))
root=trn-00
hosts=(trn-00:us-east use-01:us-east use-02:us-east hel-01:eu-north hel-02:eu-north bom-01:ap-south bom-02:ap-south)
names=("${hosts[@]%%:*}")

dir=$(mktemp -d /tmp/deltarelay-demo.XXXXXX)
pids=() publish_pid=''

stop_fleet() {
  ((${#pids[@]})) || return 0
  kill -TERM "${pids[@]}" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "${pids[@]}" 2>/dev/null || return 0 # 0 while any of them lives
    sleep 0.1
  done
  kill -KILL "${pids[@]}" 2>/dev/null || true
}
clean_up() {
  local status=$?
  trap - EXIT
  [[ -z $publish_pid ]] || kill "$publish_pid" 2>/dev/null || true
  if ((status != 0)) && [[ -d $dir ]]; then
    for name in "${names[@]}"; do
      [[ -s $dir/$name/relayd.log ]] && { echo "--- $name, last lines of its log"; tail -n 8 "$dir/$name/relayd.log"; } >&2
    done
  fi
  stop_fleet
  rm -rf "$dir"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

now() { date +%s.%N; }
since() { python3 -c 'import sys; print(f"{float(sys.argv[2]) - float(sys.argv[1]):.2f}")' "$1" "$(now)"; }
relayctl() { "$bin/relayctl" --socket "$dir/$root/admin.sock" "$@"; }

write_topology() {
  cat <<EOF
mesh: demo
plan_epoch: 1
regions:
  - {name: us-east, lan_rate: 10Gbps}
  - {name: eu-north, lan_rate: 10Gbps}
  - {name: ap-south, lan_rate: 10Gbps}
links:
  - {from: us-east, to: eu-north, rate: 3Gbps, rtt: 104ms}
  - {from: us-east, to: ap-south, rate: 1Gbps, rtt: 196ms}
  - {from: eu-north, to: ap-south, rate: 2Gbps, rtt: 130ms}
root: $root
refit: {size: 256MiB, change: 3%}
hosts:
EOF
  local number=1
  for host in "${hosts[@]}"; do
    echo "  - {name: ${host%%:*}, region: ${host##*:}, address: '$net.$((number++)):7443'}"
  done
}

write_config() { # NAME
  local role=relay private=''
  [[ $1 != "$root" ]] || { role=root private="  private: ../ca/content.key"; }
  cat <<EOF
node: $1
role: $role
topology: ../topology.yaml
state_dir: state
image: {dir: image}
tls: {cert: tls/node.crt, key: tls/node.key, ca: tls/ca.crt}
content_key:
  public: tls/content.pub
$private
admin: {socket: admin.sock}
limits: {apply_threads: 1, encode_threads: 1}
EOF
}

# Draws the tree again and again, in place on a terminal, until the process $1 has ended.
watch_tree() {
  local lines=0 text
  while kill -0 "$1" 2>/dev/null; do
    text=$(relayctl tree) || break
    if [[ -t 1 ]]; then
      ((lines == 0)) || printf '\e[%dA\e[J' "$lines"
      lines=$(wc -l <<<"$text")
      echo "$text"
    elif grep -q █ <<<"$text" && ((lines++ == 0)); then
      echo "$text" # no terminal: one picture from the middle is enough
    fi
    sleep 0.05
  done
  [[ ! -t 1 ]] || ((lines == 0)) || printf '\e[%dA\e[J' "$lines"
  relayctl tree
}

prove_equal() { # EXPORT
  local images=()
  for name in "${names[@]}"; do images+=("$dir/$name/image"); done
  python3 -B tests/e2e/compare_checkpoints.py "$1" "${images[@]}" | sed "s|$dir/||"
}

if [[ -z $bin ]]; then
  say "Packages, build (minutes the first time)"
  bin=build/release/bin
  tools/install-deps.sh
  { cmake --preset release && cmake --build --preset release --target relayd relayctl; } >"$dir/build.log" 2>&1 ||
    { tail -n 30 "$dir/build.log" >&2; fail "the build failed. Try: cmake --build --preset release"; }
  tail -n 1 "$dir/build.log"
fi

say "A certificate authority, a certificate for each host, the plan"
"$bin/relayctl" cert init-ca "$dir/ca" --mesh demo
write_topology >"$dir/topology.yaml"
for host in "${hosts[@]}"; do
  name=${host%%:*}
  mkdir "$dir/$name"
  role=relay
  [[ $name != "$root" ]] || role=root
  "$bin/relayctl" -q cert issue --ca "$dir/ca" --node "$name" --role "$role" --out "$dir/$name/tls" >/dev/null
  write_config "$name" >"$dir/$name/relayd.yaml"
done
"$bin/relayctl" plan show "$dir/topology.yaml"

say "A synthetic checkpoint of $size for the root; the six relays are empty"
"$bin/relayctl" checkpoint make "$dir/$root/image" --size "$size" --seed 1
cp -r "$dir/$root/image" "$dir/v1"
mv "$dir/$root/image.masters" "$dir/v1.masters"

say "Seven daemons; first sync of the six empty relays"
began=$(now)
for name in "${names[@]}"; do
  "$bin/relayd" --config "$dir/$name/relayd.yaml" >"$dir/$name/relayd.log" 2>&1 &
  pids+=($!)
done
for _ in $(seq 300); do
  [[ ! -S $dir/$root/admin.sock ]] || break
  kill -0 "${pids[0]}" 2>/dev/null || fail "the root does not start. Try: its log, shown below"
  sleep 0.1
done
relayctl wait converged --version 1 --timeout 300s >"$dir/wait.log" 2>&1 &
publish_pid=$!
watch_tree "$publish_pid"
wait "$publish_pid" || { cat "$dir/wait.log" >&2; fail "the first sync did not end"; }
publish_pid=''
sync_seconds=$(since "$began")
echo "all seven hosts hold v1 after $sync_seconds s"
prove_equal "$dir/v1"

version=1
seconds=("$sync_seconds")
for change in 1% 3% 5%; do
  from=v$version
  version=$((version + 1))
  say "A training step that changes $change of the weights, and the refit to v$version"
  "$bin/relayctl" checkpoint step "$dir/v$version" --from "$dir/$from" --change "$change" --seed "$version"
  began=$(now)
  relayctl publish "$dir/v$version" --wait >"$dir/publish.log" 2>&1 &
  publish_pid=$!
  watch_tree "$publish_pid"
  wait "$publish_pid" || { cat "$dir/publish.log" >&2; fail "the refit to v$version failed"; }
  publish_pid=''
  seconds+=("$(since "$began")")
  tail -n 3 "$dir/publish.log"
  relayctl -q wait converged --version "$version" --timeout 60s >/dev/null
  prove_equal "$dir/v$version"
  rm -rf "${dir:?}/$from" "${dir:?}/$from.masters"
done

say "Times and sizes against sending the full checkpoint"
relayctl versions -o json | python3 -c '
import json, sys
seconds = [float(text) for text in sys.argv[1:]]
rows = sorted(json.load(sys.stdin)["versions"], key=lambda row: int(row["version"]))
full = next(row["dense_bytes"] for row in rows if row["dense_bytes"])
line = "{:<8} {:>9} {:>14} {:>10} {:>9} {:>12} {:>14}"
print(line.format("version", "changed", "bytes sent", "of full", "smaller", "wall clock", "at 1 Gb/s"))
print(line.format("full", "-", f"{full:,}", "100 %", "1 x", f"{seconds[0]:.2f} s", f"{full / 125e6:.2f} s"))
for row, wall in zip(rows[1:], seconds[1:]):
    sent = row["payload_bytes"]
    print(line.format("v" + row["version"], "{:.2f} %".format(row["changed_percent"]), f"{sent:,}", f"{100 * sent / full:.2f} %",
                      f"{full / sent:.0f} x", f"{wall:.2f} s", f"{sent / 125e6:.2f} s"))
print("bytes sent: by the root, for each copy of a refit; wall clock: seven hosts on this machine, publish to the last commit, the")
print("full line being the first sync; at 1 Gb/s: the time of these bytes alone on one such line, computed")
' "${seconds[@]}"

if [[ $keep == yes ]]; then
  trap - EXIT INT TERM
  disown -a
  # The directory goes when the last daemon has: none may write into it meanwhile.
  printf '#!/bin/sh\nkill %s\nwhile %sfalse; do sleep 0.1; done 2>/dev/null\nrm -rf %s\n' \
    "${pids[*]}" "$(printf 'kill -0 %s || ' "${pids[@]}")" "$dir" >"$dir/stop.sh"
  chmod +x "$dir/stop.sh"
  say "The fleet runs on"
  echo "look:    $bin/relayctl --socket $dir/$root/admin.sock status"
  echo "publish: $bin/relayctl checkpoint step $dir/v5 --from $dir/v4 --change 2% --seed 5"
  echo "         $bin/relayctl --socket $dir/$root/admin.sock publish $dir/v5 --wait"
  echo "stop:    $dir/stop.sh"
else
  say "Stopping the fleet"
fi
