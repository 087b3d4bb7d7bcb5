#!/bin/sh
# Makes the certificates and tokens of a cluster, of its etcd, and of its operators, by OpenSSL and `simshard token`:
#
#   secrets.sh FOLDER ROUTERS ETCD
#
# ROUTERS are the names and addresses by which clients reach routers, and ETCD those of etcd, with commas between them.
#
#   FOLDER/node       for nodes
#   FOLDER/router     for routers
#   FOLDER/admin      for operators
#   FOLDER/etcd       for etcd
#   FOLDER/authority  the keys of the authorities, for this script alone
#
# Run it again before the certificates end, after 90 days: authorities and tokens stay, and certificates are made anew.
# Nodes and routers go on with the new ones by themselves, and take those for etcd when they are started again.
set -eu
umask 077

if [ $# -ne 3 ]; then
    echo "usage: secrets.sh FOLDER ROUTERS ETCD, as in secrets.sh secrets localhost,127.0.0.1 etcd" >&2
    exit 2
fi
folder=$1 routers=$2 etcd=$3
authorities=$folder/authority
days=90
curve="ec -pkeyopt ec_paramgen_curve:P-256"

# Makes an authority, unless it is there.
authority() {
    [ -e "$authorities/$1.pem" ] && return
    # shellcheck disable=SC2086
    openssl req -x509 -newkey $curve -nodes -days 3650 -subj "/CN=simshard $1" \
        -keyout "$authorities/$1.key" -out "$authorities/$1.next" 2> "$authorities/log"
    mv "$authorities/$1.next" "$authorities/$1.pem"
}

# Makes FILE.pem and FILE.key: a certificate by an authority, with these names.
certificate() { # FILE AUTHORITY NAMES
    # shellcheck disable=SC2086
    openssl req -newkey $curve -nodes -subj "/CN=${1##*/}" -keyout "$1.key.next" -out "$1.request" 2> "$authorities/log"
    printf 'subjectAltName=%s\n' "$3" > "$1.names"
    openssl x509 -req -in "$1.request" -days "$days" -extfile "$1.names" -out "$1.pem.next" \
        -CA "$authorities/$2.pem" -CAkey "$authorities/$2.key" 2> "$authorities/log"
    mv "$1.key.next" "$1.key"
    mv "$1.pem.next" "$1.pem"
    rm "$1.request" "$1.names"
}

# Names and addresses, with commas between them, as a certificate has them.
hosts() {
    echo "$1" | tr , '\n' | sed -E 's/^([0-9.]+|.*:.*)$/IP:\1/; /^IP:/! s/^/DNS:/' | paste -s -d , -
}

mkdir -p "$authorities"
for owner in node router admin etcd; do
    mkdir -p "$folder/$owner"
done

for name in cluster routers etcd; do
    authority "$name"
done
certificate "$folder/etcd/server" etcd "$(hosts "$etcd")"
cp "$authorities/etcd.pem" "$folder/etcd/ca.pem"
for owner in node router admin; do
    certificate "$folder/$owner/cluster" cluster "URI:simshard:$owner"
    cp "$authorities/cluster.pem" "$folder/$owner/cluster-ca.pem"
    certificate "$folder/$owner/etcd" etcd "DNS:simshard-$owner"
    cp "$authorities/etcd.pem" "$folder/$owner/etcd-ca.pem"
done
certificate "$folder/router/tls" routers "$(hosts "$routers")"
cp "$authorities/routers.pem" "$folder/admin/ca.pem"
tokens=$folder/router/tokens.toml
if [ ! -e "$tokens" ]; then
    rm -f "$folder/admin/token" "$tokens.next"
    simshard token new admin --role admin --token-file "$folder/admin/token" --tokens "$tokens.next"
    mv "$tokens.next" "$tokens"
fi
rm -f "$authorities/log"
