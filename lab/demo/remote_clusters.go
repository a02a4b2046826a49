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
	// account is the ServiceAccount that config/ gives its roles to.
	account = "system:serviceaccount:" + weirNamespace + ":weir"
	// weirNamespace is that of the controller.
	weirNamespace = "weir-system"
	// store is the Provision, and the Secret with the kubeconfig of its target.
	store = "store-17"
)

// wanted is what the two clusters have besides Weir's definitions and roles.
//
//go:embed remote/*.yaml
var wanted embed.FS

// remotePlace is where Weir provisions.
func remotePlace() place {
	p := firstPlace()
	p.nodes, p.flags = 1, []string{"--provisioning", "--leader-elect-namespace", weirNamespace}
	return p
}

// installRights gives the controller the roles of config/, those of provisioning among them, and what
// an administrator of the namespace grants.
func (c *cluster) installRights(ctx context.Context) error {
	if err := c.createFile(ctx, wanted, "remote/rights.yaml"); err != nil {
		return err
	}
	for folder, files := range map[string]fs.FS{"rbac": config.Roles, "provisioning": config.Provisioning} {
		names, err := fs.Glob(files, folder+"/*.yaml")
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := c.createFile(ctx, files, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// server returns host:port of the API server.
func (l *lab) server() (string, error) {
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

// introduce gives the controller an account of its own, and the first cluster the way to the second.
func (r *remote) introduce(ctx context.Context) error {
	r.lab.account = filepath.Join(r.lab.dir, "weir.kubeconfig")
	as, err := changed(r.lab.kubeconfig, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Impersonate = account })
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*as, r.lab.account); err != nil {
		return err
	}
	way, err := changed(r.far.kubeconfig, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		c.Server, c.TLSServerName = "https://"+r.link.Addr(), "127.0.0.1" // for which its certificate is
	})
	if err != nil {
		return err
	}
	text, err := clientcmd.Write(*way)
	if err != nil {
		return err
	}
	return r.cluster.create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: store}, Data: map[string][]byte{"kubeconfig": text},
	})
}

// changed returns a kubeconfig with each cluster and user of it changed.
func changed(file string, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) (*clientcmdapi.Config, error) {
	all, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	for _, of := range all.Contexts {
		change(all.Clusters[of.Cluster], all.AuthInfos[of.AuthInfo])
	}
	return all, nil
}
