# Functions for paths, messages and PostgreSQL. The other scripts source this file.
# shellcheck shell=bash

ROOT=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT" || exit
# shellcheck disable=SC2034 # used by the scripts
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
MAJORS_BY_PREFERENCE=(15 18 17 16)

# Only login shells have rustup's directory in the PATH.
if ! command -v cargo >/dev/null && [[ -x ${CARGO_HOME:-$HOME/.cargo}/bin/cargo ]]; then
    PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
fi

say() { printf '%s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}

# step LABEL COMMAND...: prints the command's time, and its output only if the command fails.
step() {
    local label=$1 log start=$SECONDS ticker rc=0
    shift
    log=$(mktemp)
    say "== $label"
    (while sleep 15; do say "   ... $((SECONDS - start)) s"; done) &
    ticker=$!
    "$@" >"$log" 2>&1 </dev/null || rc=$?
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    if ((rc != 0)); then
        tail -n 40 "$log" >&2
        say "   failed after $((SECONDS - start)) s: $*"
    else
        say "   done in $((SECONDS - start)) s"
    fi
    rm -f "$log"
    return "$rc"
}

cargo_key() { sed -n "/^\[workspace\.package\]/,/^\[[^w]/s/^$1 *= *\"\(.*\)\"/\1/p" Cargo.toml; }

# Prints $PG_CONFIG, or Debian's pg_config of the preferred major version, or the pg_config in the PATH, or nothing.
find_pg_config() {
    local major
    if [[ -n ${PG_CONFIG:-} ]]; then
        command -v "$PG_CONFIG" || true
        return
    fi
    for major in "${MAJORS_BY_PREFERENCE[@]}"; do
        if server_complete "/usr/lib/postgresql/$major/bin/pg_config"; then
            echo "/usr/lib/postgresql/$major/bin/pg_config"
            return
        fi
    done
    command -v pg_config || true
}

# Tells whether awty can be built for and tested on this pg_config's server.
server_complete() {
    [[ -x $1 && -x $("$1" --bindir)/postgres && -f $("$1" --includedir-server)/postgres.h ]] &&
        [[ -x $(pgxs_test_dir "$1")/regress/pg_regress ]]
}

pgxs_test_dir() { echo "$(dirname "$(dirname "$("$1" --pgxs)")")/test"; }
pg_major() { "$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'; }

# Each major version has its own target directory, so that builds do not replace each other.
choose_pg_config() {
    PG_CONFIG=$(find_pg_config)
    [[ -n $PG_CONFIG ]] || die "no PostgreSQL is found: there is no pg_config; run: make setup"
    PG_MAJOR=$(pg_major "$PG_CONFIG")
    PG_TARGET=$TARGET/pg$PG_MAJOR
    # shellcheck disable=SC2034 # used by the scripts
    case $(uname -s) in
    Darwin) LIBRARY=$PG_TARGET/release/libawty.dylib ;;
    *) LIBRARY=$PG_TARGET/release/libawty.so ;;
    esac
    export PG_CONFIG PG_MAJOR
}

find_etcd() { command -v etcd || { [[ ! -x $TARGET/etcd/usr/bin/etcd ]] || echo "$TARGET/etcd/usr/bin/etcd"; }; }

failover_complete() { [[ -n $(find_etcd) ]] && command -v patroni >/dev/null && command -v pgbackrest >/dev/null; }

require_pg_config() {
    choose_pg_config
    server_complete "$PG_CONFIG" || die "the PostgreSQL of $PG_CONFIG is not complete; run: make setup"
}
