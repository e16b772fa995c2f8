package controlplane

import (
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig is Config as a file for kubectl, self-contained.
func (p *Plane) Kubeconfig() []byte {
	const name = "updraft"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: p.Config.Host, CertificateAuthorityData: p.Config.CAData}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: p.Config.CertData, ClientKeyData: p.Config.KeyData}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		panic("a kubeconfig of four entries cannot be written: " + err.Error()) // only a bug in the types could do it
	}
	return content
}
