#!/usr/bin/env bash
# Starts the node inside the cluster's namespaces: registry, containerd, the
# control plane, kubelet, kube-proxy, CoreDNS, volumes.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/env.sh"
keys=$state/keys
conf=$state/conf

# ---- network: a bridge without a port carries the node's address
if ! ip -brief address show dev kube0 2>/dev/null | grep -q "$node_ip/"; then
	ip link add kube0 type bridge
	ip address add "$node_ip/24" dev kube0
	ip link set kube0 up
	ip route add "$service_range" dev kube0 src "$node_ip" # for kube-proxy to rewrite
fi
sysctl -qw net.ipv4.ip_forward=1
modprobe -q br_netfilter 2>/dev/null || true # part of some kernels
sysctl -qw net.bridge.bridge-nf-call-iptables=1

# ---- registry and images
start registry "$bin/cluster/registry" -address "$registry" -folder "$state/registry"
start etcd "$bin/etcd" --name "$node" --data-dir "$state/etcd" --unsafe-no-fsync --log-level warn \
	--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
	--initial-cluster "$node=http://127.0.0.1:2380"
start kube-apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
	--advertise-address="$node_ip" --bind-address="$node_ip" --secure-port=6443 \
	--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
	--service-cluster-ip-range="$service_range" --service-account-issuer=https://kubernetes.default.svc.cluster.local \
	--service-account-key-file="$keys/sa.pub" --service-account-signing-key-file="$keys/sa.key" \
	--client-ca-file="$keys/ca.crt" --tls-cert-file="$keys/apiserver.crt" --tls-private-key-file="$keys/apiserver.key" \
	--kubelet-client-certificate="$keys/apiserver-kubelet-client.crt" --kubelet-client-key="$keys/apiserver-kubelet-client.key" \
	--kubelet-certificate-authority="$keys/ca.crt" --kubelet-preferred-address-types=InternalIP \
	--requestheader-client-ca-file="$keys/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
	--requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group \
	--requestheader-username-headers=X-Remote-User --proxy-client-cert-file="$keys/front-proxy-client.crt" \
	--proxy-client-key-file="$keys/front-proxy-client.key"
# shellcheck disable=SC2016 # for the inner shell
wait_for 60 "Registry" bash -c ': <"/dev/tcp/${0%:*}/${0#*:}"' "$registry"
"$bin/cluster/images" -registry "$registry" -known "$state/images/node.known" \
	pause="$bin/cluster/pause" coredns="$bin/coredns" base probe="$bin/cluster/probe" >"$state/images/node"

# ---- containerd
# One registry, by two names: the second is the way in for ko outside.
for name in "$registry" "localhost:$registry_port"; do
	mkdir -p "$conf/certs.d/$name"
	put "$conf/certs.d/$name/hosts.toml" <<C
server = "http://$registry"
[host."http://$registry"]
  capabilities = ["pull", "resolve"]
C
done
mkdir -p "$conf/cni"
put "$conf/cni/10-pods.conflist" <<C
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/ipam", "ranges": [[{"subnet": "$pod_range"}]]}}]}
C
put "$conf/containerd.toml" containerd <<C
version = 2
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$(awk '$1 == "pause" {print $2}' "$state/images/node")"
  disable_apparmor = true
  # Root may lack CAP_SYS_RESOURCE, and may then not lower a process's OOM score.
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$conf/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$conf/certs.d"
C
start containerd containerd --config "$conf/containerd.toml"
wait_for 60 "containerd" ctr version

# ---- control plane
wait_for 180 "kube-apiserver" kubectl get --raw /readyz
start kube-controller-manager "$bin/kube-controller-manager" --kubeconfig="$keys/kube-controller-manager.kubeconfig" \
	--authentication-kubeconfig="$keys/kube-controller-manager.kubeconfig" \
	--authorization-kubeconfig="$keys/kube-controller-manager.kubeconfig" \
	--bind-address=127.0.0.1 --leader-elect=false --cluster-cidr="$pod_range" --allocate-node-cidrs=true \
	--service-cluster-ip-range="$service_range" --root-ca-file="$keys/ca.crt" \
	--service-account-private-key-file="$keys/sa.key" --use-service-account-credentials=true \
	--cluster-signing-cert-file="$keys/ca.crt" --cluster-signing-key-file="$keys/ca.key" \
	--requestheader-client-ca-file="$keys/front-proxy-ca.crt"
start kube-scheduler "$bin/kube-scheduler" --kubeconfig="$keys/kube-scheduler.kubeconfig" \
	--authentication-kubeconfig="$keys/kube-scheduler.kubeconfig" \
	--authorization-kubeconfig="$keys/kube-scheduler.kubeconfig" --bind-address=127.0.0.1 --leader-elect=false
start volumes "$bin/cluster/volumes" -server "$api" -keys "$keys" -folders "$state/volumes"

# ---- the node
put "$conf/resolv.conf" </dev/null
put "$conf/kubelet.yaml" kubelet <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_ip
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $keys/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $keys/kubelet-serving.crt
tlsPrivateKeyFile: $keys/kubelet-serving.key
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
clusterDNS: [$dns_ip]
clusterDomain: cluster.local
resolvConf: $conf/resolv.conf
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: /var/lib/kubelet/volumeplugins
healthzBindAddress: 127.0.0.1
makeIPTablesUtilChains: false
# The machine's disk is shared, and the cluster does not live long.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
C
start kubelet "$bin/kubelet" --config="$conf/kubelet.yaml" --kubeconfig="$keys/kubelet.kubeconfig" \
	--hostname-override="$node" --node-ip="$node_ip"
put "$conf/kube-proxy.yaml" kube-proxy <<C
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $keys/kube-proxy.kubeconfig}
mode: nftables
clusterCIDR: $pod_range
detectLocalMode: ClusterCIDR
hostnameOverride: $node
bindAddress: $node_ip
metricsBindAddress: 127.0.0.1:10249
healthzBindAddress: 127.0.0.1:10256
nodePortAddresses: ["$node_ip/32"]
conntrack: {maxPerCore: 0}
C
start kube-proxy "$bin/kube-proxy" --config="$conf/kube-proxy.yaml"
wait_for 180 "Node Ready" kubectl wait --for=condition=Ready "node/$node" --timeout=1s

wait_for 60 "Service account" kubectl -n default get serviceaccount default
apply node "$state/images/node" "$here/manifests/dns.yaml" "$here/manifests/storage.yaml"
wait_for 180 "CoreDNS" kubectl -n kube-system wait --for=condition=Available deployment/coredns --timeout=1s
