#!/bin/sh
# Makes a fresh clone ready to run: packages, build, a Redis server. With --test also a Chromium for the page tests.
# It works before any package is installed, and is quick and quiet when everything is there.
# It changes nothing outside this folder but by the system's package manager.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# Runs a command with its output kept back; shows it only when the command fails.
quietly() {
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then rm -f "$log"; return 0; fi
  cat "$log" >&2
  rm -f "$log"
  return 1
}

check_node() {
  has node || fail "Node is not installed; install Node 20.19 or newer."
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    fail "Node $(node --version) is too old; install Node 20.19 or newer."
}

install_packages() {
  stamp=node_modules/.nanogate-lock
  wanted=$(cksum <package-lock.json)
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return 0
  say "Installing packages ..."
  quietly npm ci --no-audit --no-fund || fail "npm ci failed; its output is above."
  printf '%s\n' "$wanted" >"$stamp"
}

build() {
  if [ -f dist/.built ] && [ -z "$(find src package-lock.json tsconfig.json tsconfig.build.json scripts/copy-assets.mjs -newer dist/.built | head -n 1)" ]; then
    return 0
  fi
  say "Building ..."
  mkdir -p dist
  # The stamp is from before the build, so that what is saved during it is built the next time.
  touch dist/.building
  quietly npm run build || fail "the build failed; its output is above."
  mv dist/.building dist/.built
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs one package of a system whose package manager we know; fails without a word where there is none.
install_system_package() {
  if has apt-get; then
    [ "$(id -u)" -eq 0 ] || has sudo || return 1
    say "Installing $1 ..."
    apt_install "$1" 2>/dev/null && return 0
    quietly as_root apt-get update && apt_install "$1"
  elif has brew; then
    say "Installing $1 ..."
    quietly brew install "$1"
  else
    return 1
  fi
}

apt_install() {
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1"
}

redis_server() {
  if has redis-server; then printf redis-server; elif has valkey-server; then printf valkey-server; fi
}

check_redis() {
  if [ -z "$(redis_server)" ]; then
    package=redis-server
    has apt-get || package=redis
    install_system_package "$package" || true
  fi
  server=$(redis_server)
  [ -n "$server" ] || fail "no Redis server was found; install redis-server or valkey-server, 7.0 or newer."
  major=$("$server" --version | sed -n 's/.*v=\([0-9]*\)\..*/\1/p')
  [ "${major:-0}" -ge 7 ] || fail "$server is older than 7.0; install Redis or Valkey 7.0 or newer."
}

has_chromium() {
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    has "$name" && return 0
  done
  [ -d "/Applications/Google Chrome.app" ] || [ -d "/Applications/Chromium.app" ]
}

# A missing browser is told, not fatal: the tests that need one say so themselves.
check_chromium() {
  has_chromium && return 0
  if has apt-get; then install_system_package chromium || true; fi
  has_chromium || say "setup: no Chromium was found; install chromium or Google Chrome for the page tests." >&2
}

with_tests=no
for argument in "$@"; do
  case "$argument" in
    --test) with_tests=yes ;;
    *) fail "unknown argument $argument; known is --test." ;;
  esac
done

check_node
install_packages
build
check_redis
[ "$with_tests" = no ] || check_chromium
