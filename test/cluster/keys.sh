#!/usr/bin/env bash
# Makes the cluster's keys, certificates and kubeconfigs, once.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/env.sh"
[ ! -e "$state/keys/done" ] || exit 0
rm -rf "$state/keys"
mkdir -p "$state/keys"
chmod 700 "$state/keys"
cd "$state/keys"

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null; }
# authority NAME COMMON-NAME
authority() {
	key "$1"
	openssl req -x509 -new -key "$1.key" -days 3650 -subj "/CN=$2" -out "$1.crt" \
		-addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,digitalSignature,keyCertSign,cRLSign'
}
# certificate NAME AUTHORITY SUBJECT USAGE [ALTERNATIVE-NAMES]
certificate() {
	key "$1"
	openssl req -new -key "$1.key" -subj "$3" -out "$1.csr"
	{
		echo 'basicConstraints=critical,CA:FALSE'
		echo 'keyUsage=critical,digitalSignature'
		echo "extendedKeyUsage=$4"
		[ -z "${5:-}" ] || echo "subjectAltName=$5"
	} >"$1.ext"
	openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -CAcreateserial -days 3650 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
	rm "$1.csr" "$1.ext"
}
authority ca kubernetes-ca
authority front-proxy-ca front-proxy-ca
certificate apiserver ca /CN=kube-apiserver serverAuth "IP:$node_ip,IP:127.0.0.1,IP:$api_service_ip,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
certificate apiserver-kubelet-client ca /CN=kube-apiserver-kubelet-client clientAuth
certificate front-proxy-client front-proxy-ca /CN=front-proxy-client clientAuth
certificate kubelet-serving ca "/O=system:nodes/CN=system:node:$node" serverAuth "IP:$node_ip,DNS:$node"
certificate admin ca /O=system:masters/CN=kubernetes-admin clientAuth
certificate kubelet ca "/O=system:nodes/CN=system:node:$node" clientAuth
for name in kube-controller-manager kube-scheduler kube-proxy; do certificate $name ca /CN=system:$name clientAuth; done
openssl genrsa -out sa.key 2048 2>/dev/null
openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null

for name in admin kubelet kube-controller-manager kube-scheduler kube-proxy; do
	cat >$name.kubeconfig <<Y
apiVersion: v1
kind: Config
current-context: updraft-cluster
clusters: [{name: updraft-cluster, cluster: {server: "$api", certificate-authority-data: $(base64 -w0 <ca.crt)}}]
users: [{name: $name, user: {client-certificate-data: $(base64 -w0 <$name.crt), client-key-data: $(base64 -w0 <$name.key)}}]
contexts: [{name: updraft-cluster, context: {cluster: updraft-cluster, user: $name}}]
Y
	chmod 600 $name.kubeconfig
done
touch done
say "Keys and certificates"
