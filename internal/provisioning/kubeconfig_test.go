// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"strings"
	"testing"
)

const plain = `
apiVersion: v1
kind: Config
current-context: edge
contexts: [{name: edge, context: {cluster: edge, user: edge%s}}]
clusters: [{name: edge, cluster: {server: "%s"%s}}]
users: [{name: edge, user: {token: tok-123456%s}}]
`

// A kubeconfig gets nothing of Weir's pod: neither a command run, nor a file read.
func TestKubeconfigFields(t *testing.T) {
	file := t.TempDir() + "/token"
	for _, tt := range []struct{ name, context, server, cluster, user, want string }{
		{"plain", "", "https://edge.example.com:6443", "", "", ""},
		{"exec", "", "https://edge", "", ", exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}", "exec is not taken"},
		{"auth provider", "", "https://edge", "", ", auth-provider: {name: oidc}", "auth-provider is not taken"},
		{"token file", "", "https://edge", "", ", tokenFile: " + file, "tokenFile is not taken"},
		{"certificate file", "", "https://edge", "", ", client-certificate: " + file, "client-certificate is not taken"},
		{"key file", "", "https://edge", "", ", client-key: " + file, "client-key is not taken"},
		{"authority file", "", "https://edge", ", certificate-authority: " + file, "", "certificate-authority is not taken"},
		{"proxy", "", "https://edge", ", proxy-url: http://127.0.0.1:1", "", "proxy-url is not taken"},
		{"http", "", "http://edge", "", "", "server: want https://host"},
		{"a socket", "", "unix:///var/run/x", "", "", "server: want https://host"},
		{"a user in the address", "", "https://a:b@edge", "", "", "server: want https://host"},
		{"a query in the address", "", "https://edge/x?token=s3cret", "", "", "server: want https://host"},
		{"a fragment in the address", "", "https://edge/x#s3cret", "", "", "server: want https://host"},
		{"namespace", ", namespace: shop", "https://edge", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, namespace, err := readKubeconfig(fmt.Appendf(nil, plain, tt.context, tt.server, tt.cluster, tt.user))
			if tt.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
					t.Fatalf("got %v, want %q", err, tt.want)
				}
				return
			}
			wanted := "default"
			if tt.context != "" {
				wanted = "shop"
			}
			if err != nil || cfg.Host != tt.server || cfg.BearerToken != "tok-123456" || namespace != wanted {
				t.Errorf("got %v in %q, %v", cfg, namespace, err)
			}
		})
	}
	for _, text := range []string{"", "x: [", "tok-123456", "apiVersion: v1\nkind: Config\ncurrent-context: gone"} {
		if _, _, err := readKubeconfig([]byte(text)); err == nil || strings.Contains(err.Error(), "tok-") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
