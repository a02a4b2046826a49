// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/httpserver"
	"weir.dev/weir/internal/kube/apiserver"
)

// SecureOptions configure weir page for other viewers.
type SecureOptions struct {
	// API has credentials that are used only to review tokens.
	API *rest.Config
	// Client returns a client for a configuration with a viewer's token.
	Client  func(*rest.Config) (client.Client, error)
	Leader  func(*rest.Config) app.Way
	Cluster string
	Listen  string
	// Certificate is a directory with tls.crt and tls.key, such as a mounted kubernetes.io/tls Secret.
	Certificate string
	Out         io.Writer
}

// ServeSecure serves viewers with a cluster token over HTTPS until ctx ends. A *app.UsageError means that an
// option must be corrected.
func ServeSecure(ctx context.Context, o SecureOptions) error {
	cert := &certificate{dir: o.Certificate}
	if _, err := cert.get(nil); err != nil {
		return &app.UsageError{Err: fmt.Errorf("--certificate: %w; it is a directory with tls.crt and tls.key", err)}
	}
	d, err := newAuthenticator(o, cert)
	if err != nil {
		return err
	}
	server, err := httpserver.Listen(ctx, o.Listen, httpserver.Options{
		Handler: d.handler(), TLS: &tls.Config{GetCertificate: cert.get}, //nolint:gosec // httpserver sets the lowest version
		MaxHeaderBytes: longestForm, MaxBodyBytes: longestForm, MaxConnections: maxBrowserConnections,
		WriteTimeout: gatherTimeout + 30*time.Second, IdleTimeout: idleTimeout,
	})
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if _, err := fmt.Fprintf(o.Out, "Weir's page: https://%s/\nWho shows a token of the cluster sees what it may see.\n", server.Listener.Addr()); err != nil {
		_ = server.Listener.Close() // its URL is unknown
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // no need to drain: pages are read-only
	go d.tidy(ctx)
	if err := server.Serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newAuthenticator(o SecureOptions, cert *certificate) (*authenticator, error) {
	hc, err := rest.HTTPClientFor(o.API)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", o.API.Host, err)
	}
	reviews := func() (reviewer, error) {
		a, err := apiserver.NewAccess(o.API, hc)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, token string, from netip.Addr, now time.Time) (int, error) {
			return a.Allows(ctx, token, from, "get", Right, now)
		}, nil
	}
	strangers, err := reviews()
	if err != nil {
		return nil, err
	}
	guests, err := reviews()
	if err != nil {
		return nil, err
	}
	return &authenticator{
		strangers: strangers, guests: guests, cluster: o.Cluster, visits: newVisits(), named: cert.has,
		leader: func(token string) app.Way { return o.Leader(asViewer(o.API, token)) },
		as:     func(token string) (client.Reader, error) { return o.Client(asViewer(o.API, token)) },
	}, nil
}

// asViewer replaces Weir's credentials by a viewer's token.
func asViewer(rc *rest.Config, token string) *rest.Config {
	viewer := rest.AnonymousClientConfig(rc)
	viewer.BearerToken, viewer.QPS, viewer.UserAgent = token, -1, rc.UserAgent
	return viewer
}

func (d *authenticator) tidy(ctx context.Context) {
	for minute := time.NewTicker(time.Minute); ; {
		select {
		case <-ctx.Done():
			minute.Stop()
			return
		case now := <-minute.C:
			d.visits.tidy(now)
		}
	}
}

// certificate is reloaded at most once a minute, on use, so renewal needs no restart.
type certificate struct {
	dir string

	mu   sync.Mutex
	had  *tls.Certificate
	read time.Time
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.had != nil && time.Since(c.read) < time.Minute {
		return c.had, nil
	}
	c.read = time.Now()
	found, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "tls.crt"), filepath.Join(c.dir, "tls.key"))
	if err == nil {
		c.had = &found
	} else if c.had == nil {
		return nil, err
	}
	return c.had, nil
}

func (c *certificate) has(host string) bool {
	got, err := c.get(nil)
	return err == nil && got.Leaf.VerifyHostname(host) == nil
}
