#!/usr/bin/env bash
# Puts Debian's prometheus and promtool into a folder, and nothing anywhere else:
# test/metrics runs them. Where there is no apt-get it says so and does nothing, and
# the test says what it leaves out.
#   hack/prometheus.sh FOLDER
set -euo pipefail
folder=$1
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo "There is no apt-get: test/metrics will leave out what needs Prometheus" >&2
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# Lists of packages may be old or absent; only root can fetch them anew.
apt-get download prometheus >log 2>&1 || { apt-get update >log 2>&1 && apt-get download prometheus >log 2>&1; } || {
	cat log >&2
	echo "Cannot fetch Debian's package prometheus: run apt-get update as root, then make tools" >&2
	exit 1
}
dpkg-deb -x prometheus_*.deb .
mkdir -p "$folder"
install -m 755 usr/bin/promtool usr/bin/prometheus "$folder"
