// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"weir.dev/weir/config"
)

const (
	// account is the provisioner's ServiceAccount.
	account = "system:serviceaccount:" + weirNamespace + ":weir-provisioner"
	// weirNamespace is the provisioner's namespace.
	weirNamespace = "weir-system"
	// The Provision, and the Secret with its target's kubeconfig.
	provisionName = "store-17"
)

// remoteManifests are the manifests of the two clusters other than Weir's CRDs and roles.
//
//go:embed remote/*.yaml
var remoteManifests embed.FS

func remoteEnvironment() place {
	p := mainEnvironment()
	p.nodes = 1
	return p
}

// startProvisioner starts weir-provisioner with its own account. There is one replica and no
// election.
func (l *lab) startProvisioner(ctx context.Context) error {
	program, err := l.opts.programPath("weir-provisioner", "make build")
	if err != nil {
		return err
	}
	l.provisioner, err = l.startProcess(ctx, "weir-provisioner", program, "--kubeconfig", l.account, "--leader-elect=false",
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--log-format", "text", "-v", "1")
	return err
}

// installRoles binds the roles of config/provisioning and those that a namespace administrator
// grants.
func (c *cluster) installRoles(ctx context.Context) error {
	if err := c.createFile(ctx, remoteManifests, "remote/rights.yaml"); err != nil {
		return err
	}
	names, err := fs.Glob(config.Provisioning, "provisioning/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.createFile(ctx, config.Provisioning, name); err != nil {
			return err
		}
	}
	return nil
}

// apiServerHost returns host:port of the API server.
func (l *lab) apiServerHost() (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	if err != nil {
		return "", err
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		return "", fmt.Errorf("%s: %w", l.kubeconfig, err)
	}
	return at.Host, nil
}

// connectClusters creates the provisioner's account and gives the first cluster access to the second.
func (r *remote) connectClusters(ctx context.Context) error {
	r.lab.account = filepath.Join(r.lab.dir, "weir.kubeconfig")
	as, err := editKubeconfig(r.lab.kubeconfig, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Impersonate = account })
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*as, r.lab.account); err != nil {
		return err
	}
	way, err := editKubeconfig(r.target.kubeconfig, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.Server, c.TLSServerName = "https://"+r.link.Addr(), "127.0.0.1" // the name in its certificate
	})
	if err != nil {
		return err
	}
	text, err := clientcmd.Write(*way)
	if err != nil {
		return err
	}
	return r.cluster.createObject(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: provisionName}, Data: map[string][]byte{"kubeconfig": text},
	})
}

// editKubeconfig returns a kubeconfig with change applied to each cluster and user.
func editKubeconfig(file string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) (*clientcmdapi.Config, error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	for _, of := range config.Contexts {
		change(config.Clusters[of.Cluster], config.AuthInfos[of.AuthInfo])
	}
	return config, nil
}
