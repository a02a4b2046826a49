// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
	"weir.dev/weir/test/controlplane"
)

// In the cluster, with only the permission to review tokens, the page shows what RBAC allows: all
// namespaces to one user, one namespace to another, and nothing without a token or permission. It
// never prints a token.
func TestThePageInTheCluster(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	out, err := l.cluster.kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", "../../config/page")
	if err != nil {
		t.Fatal(out)
	}
	other := l.namespace + "-other"
	l.kubectl("create", "namespace", other)
	for _, name := range []string{"everywhere", "here", "stranger"} {
		l.kubectl("-n", l.namespace, "create", "serviceaccount", name)
	}
	account := func(name string) string { return "--serviceaccount=" + l.namespace + ":" + name }
	for name, binding := range map[string][]string{
		"look-everywhere": {"clusterrolebinding", "--clusterrole=weir-page-viewer", account("everywhere"), account("here")},
		"see-everywhere":  {"clusterrolebinding", "--clusterrole=weir-view", account("everywhere")},
		"read-everywhere": {"clusterrolebinding", "--clusterrole=system:aggregate-to-view", account("everywhere")},
		"see-here":        {"rolebinding", "--clusterrole=weir-view", "-n=" + l.namespace, account("here"), account("stranger")},
		"read-here":       {"rolebinding", "--clusterrole=system:aggregate-to-view", "-n=" + l.namespace, account("here"), account("stranger")},
	} {
		name = l.namespace + "-" + name
		l.kubectl(append([]string{"create", binding[0], name}, binding[1:]...)...)
		if binding[0] == "clusterrolebinding" {
			t.Cleanup(func() {
				_, _ = l.cluster.kubectl(context.WithoutCancel(t.Context()), "delete", "clusterrolebinding", name)
			})
		}
	}
	l.service("web", l.node("n1", "10.0.0.1"))

	certificate, roots := certificateOf(t, l)
	page := filepath.Join(l.dir, "page")
	l.must(controlplane.WriteKubeconfig(page, l.cluster.rest, pageAccount))
	free, err := process.FreeAddresses(t.Context(), 1)
	l.must(err)
	served, err := process.StartCommand(t.Context(), process.Command{
		Name: "page", Dir: l.dir, Path: filepath.Join(bin, "weir"),
		Args: []string{"page", "--kubeconfig", page, "--listen", free[0], "--certificate", certificate}, Env: l.env,
	})
	l.must(err)
	t.Cleanup(served.Kill)

	browser := &http.Client{
		Timeout: 3 * time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ask := func(path, token string) (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+free[0]+path, nil)
		l.must(err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := browser.Do(req)
		if err != nil {
			return 0, "", err
		}
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body), errors.Join(err, res.Body.Close())
	}
	token := func(name string) string {
		out, err := l.cluster.kubectl(t.Context(), "-n", l.namespace, "create", "token", name)
		if err != nil {
			t.Fatal(out)
		}
		return strings.TrimSpace(out)
	}
	everywhere, here, stranger := token("everywhere"), token("here"), token("stranger")
	const forged = "eyJhbGciOiJSUzI1NiJ9.e30.e30"
	for _, tt := range []struct {
		user, token, path string
		status            int
		wantText, never   string
	}{
		{"who sees everything", everywhere, "/pools", 200, l.namespace + "/web", ""},
		{"one namespace of it", everywhere, "/in/" + l.namespace + "/pools", 200, l.namespace + "/web", ""},
		{"another namespace of it", everywhere, "/in/" + other + "/pools", 200, "0 BackendPools", "/web"},
		{"who sees one namespace, of it", here, "/in/" + l.namespace + "/pools", 200, l.namespace + "/web", ""},
		{"the same of all", here, "/pools", 403, "/in/NAMESPACE/", "/web<"},
		{"the same of another", here, "/in/" + other + "/", 403, "forbidden", "/web<"},
		{"the same, a pool of another", here, "/in/" + l.namespace + "/pool/" + other + "/web", 404, "another namespace", "kubernetes"},
		{"who may not look", stranger, "/in/" + l.namespace + "/pools", 403, "weir-page-viewer", "/web"},
		{"nobody", "", "/pools", 401, "Sign in", "/web"},
		{"a forged token", forged, "/pools", 401, "Sign in", "/web"},
	} {
		l.eventually(tt.user, func() error {
			status, body, err := ask(tt.path, tt.token)
			if err == nil && (status != tt.status || !strings.Contains(body, tt.wantText) || tt.never != "" && strings.Contains(body, tt.never)) {
				err = fmt.Errorf("%s: %d, want %d with %q, without %q:\n%s", tt.path, status, tt.status, tt.wantText, tt.never, body)
			}
			return err
		})
	}

	res, err := browser.PostForm("https://"+free[0]+"/login", url.Values{"token": {here}, "namespace": {l.namespace}})
	l.must(err)
	l.must(res.Body.Close())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+free[0]+res.Header.Get("Location")+"pools", nil)
	l.must(err)
	for _, c := range res.Cookies() {
		req.AddCookie(c)
	}
	res, err = browser.Do(req)
	l.must(err)
	body, err := io.ReadAll(res.Body)
	l.must(errors.Join(err, res.Body.Close()))
	if res.StatusCode != http.StatusOK || !strings.Contains(string(body), l.namespace+"/web") {
		t.Errorf("who has signed in: %d %s", res.StatusCode, body)
	}
	for _, secret := range []string{everywhere, here, stranger, forged} {
		if strings.Contains(served.ReadOutput(), secret) {
			t.Errorf("a token is printed:\n%s", served.ReadOutput())
		}
	}
	if !strings.Contains(served.ReadOutput(), "https://"+free[0]) {
		t.Errorf("it says not where it is:\n%s", served.ReadOutput())
	}
}

// certificateOf writes a certificate for a loopback address and returns its directory and the
// trusted roots.
func certificateOf(t *testing.T, l *lab) (string, *x509.CertPool) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	l.must(err)
	dir := t.TempDir()
	l.must(os.WriteFile(filepath.Join(dir, "tls.crt"), cert, 0o600))
	l.must(os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return dir, roots
}
