// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A two-byte user takes over a kilobyte once decoded, so values are bounded as well as bytes.
const maxKubeconfigBytes, maxKubeconfigValues = 256 << 10, 10_000

// maxServerURL is in bytes: the status and the cache store it.
const maxServerURL = 1024

func parseKubeconfig(text []byte) (*rest.Config, string, error) {
	remaining := maxKubeconfigValues
	if len(text) > maxKubeconfigBytes {
		return nil, "", fmt.Errorf("it has more than %d KiB", maxKubeconfigBytes>>10)
	}
	_, err := parseYAML(text, &remaining)
	switch known, ok := errors.AsType[unsupportedError](err); {
	case ok && remaining >= 0:
		return nil, "", known
	case ok:
		return nil, "", fmt.Errorf("it has more than %d values", maxKubeconfigValues)
	case err != nil: // the error may quote credentials
		return nil, "", errors.New("it is no kubeconfig")
	}
	cfg, namespace, err := readKubeconfig(text)
	if err == nil && len(cfg.Host) > maxServerURL {
		return nil, "", fmt.Errorf("server: it has %d bytes, and at most %d", len(cfg.Host), maxServerURL)
	}
	return cfg, namespace, err
}

// readKubeconfig returns how the current context of a kubeconfig reaches its cluster, and its
// namespace. Its author must not reach Weir's pod: a command would run there, and a path would read
// its files. So fields are taken one by one, and clientcmd resolves nothing.
// Errors quote nothing but names of fields.
func readKubeconfig(text []byte) (*rest.Config, string, error) {
	kc, err := clientcmd.Load(text)
	if err != nil {
		return nil, "", errors.New("it is no kubeconfig")
	}
	in, ok := kc.Contexts[kc.CurrentContext]
	if !ok {
		return nil, "", errors.New("it has no current-context that is among its contexts")
	}
	cluster, ok := kc.Clusters[in.Cluster]
	if !ok {
		return nil, "", errors.New("the cluster of its current-context is not there")
	}
	user, ok := kc.AuthInfos[in.AuthInfo]
	if !ok {
		return nil, "", errors.New("the user of its current-context is not there")
	}
	if err := selfContained(cluster, user); err != nil {
		return nil, "", err
	}
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil || strings.ContainsAny(cluster.Server, "?#") { // people are shown it
		return nil, "", errors.New("server: want https://host, with an optional port and path, and nothing after it")
	}
	namespace := in.Namespace
	if namespace == "" {
		namespace = "default"
	}
	cfg := &rest.Config{
		Host: cluster.Server, BearerToken: user.Token, Username: user.Username, Password: user.Password,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: cluster.InsecureSkipTLSVerify, ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
		DisableCompression: cluster.DisableCompression,
	}
	if user.Impersonate != "" {
		cfg.Impersonate = rest.ImpersonationConfig{
			UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
		}
	}
	return cfg, namespace, nil
}

// selfContained refuses what is not in the kubeconfig itself.
func selfContained(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) error {
	for field, set := range map[string]bool{
		"exec": user.Exec != nil, "auth-provider": user.AuthProvider != nil, "tokenFile": user.TokenFile != "",
		"client-certificate": user.ClientCertificate != "", "client-key": user.ClientKey != "",
		"certificate-authority": cluster.CertificateAuthority != "", "proxy-url": cluster.ProxyURL != "",
	} {
		if set {
			return fmt.Errorf("%s is not taken: it has to hold all it needs in itself, and is reached directly", field)
		}
	}
	return nil
}
