#!/bin/sh
# certbot runs this with every new certificate. The services find the new pair by themselves, nginx by tandem-proxy-certificate.path.
set -eu
[ "${RENEWED_LINEAGE##*/}" = tandem ] || exit 0
put() { # put FROM TO MODE: in one step
    install -o tandem-server -g tandem-server -m "$3" "$RENEWED_LINEAGE/$1" "/etc/tandem/tls/.$2.new"
    mv "/etc/tandem/tls/.$2.new" "/etc/tandem/tls/$2"
}
put privkey.pem server.key 0600
put fullchain.pem server.pem 0644
