#!/usr/bin/env bash
# Installs what is missing, builds the release preset, runs every test and ends with the count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install-deps.sh
cmake --preset release
cmake --build --preset release

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --preset release 2>&1 | tee "$log" || status=$?

# The count, from CTest's own summary: "98% tests passed, 2 tests failed out of 100".
summary=$(grep -E 'tests passed, [0-9]+ tests failed out of [0-9]+' "$log" || true)
if [[ -z $summary ]]; then
  echo "error: no test ran: CTest printed no summary. Try: ctest --preset release -N" >&2
  exit 1
fi
failed=$(sed -E 's/.* ([0-9]+) tests failed out of.*/\1/' <<<"$summary")
total=$(sed -E 's/.*out of ([0-9]+).*/\1/' <<<"$summary")
echo "$((total - failed)) passed, $failed failed"
exit "$status"
