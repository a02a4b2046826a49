// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
)

// Over HTTPS the API server authorizes metrics readers: not without a token or permission, but any
// account bound to the shipped role.
func TestMetricsAreForTheirReadersAlone(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	weir := l.controller("--leader-elect=false", "--metrics-secure")
	l.kubectl("-n", l.namespace, "create", "serviceaccount", "stranger")
	ask := func(token string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+weir.metrics+"/metrics", nil)
		l.must(err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		}
		res, err := insecure.Do(req)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	reader, stranger := l.reader(), l.token("stranger")
	for name, want := range map[string]int{"": 401, "eyJhbGciOiJSUzI1NiJ9.e30.e30": 401, stranger: 403, reader: 200} {
		l.eventually("an answer", func() error {
			got, err := ask(name)
			if err == nil && got != want {
				err = fmt.Errorf("%d, want %d for the token %.20q", got, want, name)
			}
			return err
		})
	}
	if _, err := get(weir.metrics, "/metrics"); err == nil {
		t.Error("metrics are served in clear text")
	}
	l.eventually("the series that alerts begin with", func() error {
		return checkSeries(insecure, weir.metrics, reader, "\nweir_build_info{", "\nweir_backendpools_out_of_sync_oldest_seconds ", "\nweir_leftovers ")
	})
}

// insecure skips certificate verification: here the client authenticates.
var insecure = &http.Client{Timeout: 3 * time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above

// token returns a token of a ServiceAccount in the namespace.
func (l *lab) token(account string) string {
	l.t.Helper()
	out, err := l.cluster.kubectl(l.t.Context(), "-n", l.namespace, "create", "token", account)
	if err != nil {
		l.t.Fatal(out)
	}
	return out
}

// reader creates a ServiceAccount that may read metrics and returns its token.
func (l *lab) reader() string {
	l.t.Helper()
	l.kubectl("-n", l.namespace, "create", "serviceaccount", "reader")
	l.kubectl("create", "clusterrolebinding", l.namespace, "--clusterrole", "weir-metrics-reader", "--serviceaccount", l.namespace+":reader")
	l.t.Cleanup(func() {
		_, _ = l.cluster.kubectl(context.WithoutCancel(l.t.Context()), "delete", "clusterrolebinding", l.namespace)
	})
	return l.token("reader")
}

// checkSeries reads metrics like Prometheus and returns an error that names a missing series.
func checkSeries(client *http.Client, address, token string, names ...string) error {
	req, err := http.NewRequest(http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	for _, series := range names {
		if err == nil && !strings.Contains(string(page), series) {
			err = fmt.Errorf("no series %q", series)
		}
	}
	return err
}
