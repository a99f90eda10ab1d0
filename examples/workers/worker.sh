#!/usr/bin/env bash
# An external worker with psql. PGHOST, PGDATABASE and PGUSER name the server. If it ends with an error, start it again.
set -euo pipefail
sql() { psql -XAtq -v ON_ERROR_STOP=1 "$@" -f -; }

send_mail() { # must return within the job's timeout; the key is the same each time this mail is tried
    sleep "$4" && [[ -n $3 ]] && echo "mail $1 about $2 to $3"
}

while true; do
    lease=$(sql -v me="mail-$$" -F $'\037' <<<"SELECT lease, key, entity_key, args ->> 'to', coalesce(args ->> 'seconds', '0') FROM awty.claim('{mail}', :'me')")
    IFS=$'\037' read -r number key about to seconds <<<"$lease"
    if [[ -z $lease ]]; then sleep "$(sql <<<"SELECT extract(epoch FROM awty.next_claim_in('{mail}'))")"
    elif send_mail "$key" "$about" "$to" "$seconds"; then sql -v lease="$number" <<<"SELECT awty.complete(:lease)" >/dev/null
    else sql -v lease="$number" <<<"SELECT awty.fail(:lease, 'could not be sent')" >/dev/null; fi
done
