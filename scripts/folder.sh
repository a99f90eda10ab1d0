# Folders with another Debian and its PostgreSQL, and the way into them. Sourced after lib.sh, never run.
# shellcheck shell=bash

# make_folder FOLDER RELEASE MAJOR: about 1.5 GB, by mmdebstrap, kept for the next time. MIRROR is where the packages come from, if not
# from Debian's. Rust is the one of this machine.
make_folder() {
    local folder=$1 release=$2 major=$3
    ((EUID == 0)) || die "this needs root: it makes a Debian in a folder and enters it"
    if [[ ! -x $folder/usr/lib/postgresql/$major/bin/pg_config ]]; then
        command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt-get install mmdebstrap"
        local packages=postgresql-$major,postgresql-server-dev-$major,libclang-dev,gcc,libc6-dev,make,git,sqlsmith,ca-certificates
        step "make $folder with Debian $release and PostgreSQL $major" \
            mmdebstrap --variant=apt --include="$packages" "$release" "$folder" ${MIRROR:+"$MIRROR"} ||
            die "mmdebstrap failed; the lines above say why"
    fi
    step "fetch the packages of Cargo.lock" cargo fetch --locked
    mkdir -p "$folder"/{awty,root/.cargo,root/.rustup}
}

# enter_folder FOLDER [NAME=VALUE...] COMMAND...: runs it there in the checkout, whose target directory stays out. In a mount namespace
# of its own: what is mounted is gone with the command.
enter_folder() {
    local folder=$1
    shift
    # shellcheck disable=SC2016 # the inner shell's variables
    local enter='
set -e
folder=$1 root=$2 cargo=$3 rustup=$4
shift 4
mount --bind "$root" "$folder/awty"
mount --bind "$cargo" "$folder/root/.cargo"
mount --bind "$rustup" "$folder/root/.rustup"
mount -t proc proc "$folder/proc"
mount --rbind /dev "$folder/dev"
exec chroot "$folder" env -i -C /awty "$@"
'
    exec unshare --mount bash -c "$enter" enter "$folder" "$ROOT" "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}" \
        HOME=/root CARGO_HOME=/root/.cargo RUSTUP_HOME=/root/.rustup LC_ALL=C.UTF-8 TMPDIR=/tmp \
        PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=/var/tmp/awty-target "$@"
}
