# Makes and uses folders with another Debian and its PostgreSQL. Scripts source this file after lib.sh.
# shellcheck shell=bash

folder_of() { echo "${AWTY_FOLDER:-/var/tmp/awty-folder-$1}"; }

# make_folder MAJOR: installs the Debian release that has this version with mmdebstrap (1.6 GB). MIRROR replaces Debian's servers.
make_folder() {
    local major=$1 folder release packages jit=
    folder=$(folder_of "$major")
    case $major in
    15) release=bookworm ;;
    17) release=trixie ;;
    18) release=forky jit=,postgresql-18-jit ;; # Debian's packages of older versions contain the JIT compiler
    *) die "there is no folder for PostgreSQL $major: Debian has 15, 17 and 18" ;;
    esac
    ((EUID == 0)) || die "this needs root: it makes a Debian in a folder and enters it"
    if [[ ! -f $folder/.complete ]]; then
        command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt-get install mmdebstrap"
        [[ ! -e $folder ]] || die "$folder is not complete; see that nothing is mounted in it, and remove it"
        packages=postgresql-$major$jit,postgresql-server-dev-$major,postgresql-plperl-$major,postgresql-plpython3-$major
        packages+=,libclang-dev,gcc,libc6-dev,make,ca-certificates,git,sqlsmith,pgbouncer,iproute2,openssl,curl,python3-venv
        # The package lists of an unreleased Debian expire after a week.
        step "make $folder with Debian $release and PostgreSQL $major" \
            mmdebstrap --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" \
            "$release" "$folder" ${MIRROR:+"$MIRROR"} || die "mmdebstrap failed; the lines above say why"
        mkdir -p "$folder"/{awty,root/.cargo,root/.rustup}
        touch "$folder/.complete"
    fi
    cargo fetch -q --locked
}

# enter_folder MAJOR [NAME=VALUE...] COMMAND...: runs the command in the folder's checkout. The mounts end with the command, because it
# has its own mount namespace. The target directory is outside of the folder.
enter_folder() {
    local major=$1 name passed=()
    shift
    for name in AWTY_COMMIT CI; do
        [[ -z ${!name:-} ]] || passed+=("$name=${!name}")
    done
    # shellcheck disable=SC2016 # the inner shell's variables
    local enter='
set -e
folder=$1 root=$2 cargo=$3 rustup=$4
shift 4
mount --bind "$root" "$folder/awty"
for pair in "$cargo:.cargo" "$rustup:.rustup"; do
    mount --bind "${pair%%:*}" "$folder/root/${pair##*:}"
    mount -o remount,bind,ro "$folder/root/${pair##*:}"
done
mount -t proc proc "$folder/proc"
mount --rbind /dev "$folder/dev"
exec chroot "$folder" env -i -C /awty "$@"
'
    exec unshare --mount --propagation private bash -c "$enter" enter "$(folder_of "$major")" "$ROOT" \
        "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}" \
        HOME=/root CARGO_HOME=/root/.cargo RUSTUP_HOME=/root/.rustup LC_ALL=C.UTF-8 TMPDIR=/tmp \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' \
        CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=/var/tmp/awty-target \
        PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config" "${passed[@]}" "$@"
}
