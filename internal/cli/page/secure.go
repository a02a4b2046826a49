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
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/observe/httpserver"
)

// SecureOptions configure weir page for other viewers.
type SecureOptions struct {
	// API has credentials that are used only to review tokens.
	API *rest.Config
	// Client returns a client for a configuration with a viewer's token.
	Client  func(*rest.Config) (client.Client, error)
	Leader  func(*rest.Config) app.Connection
	Cluster string
	Listen  string
	// Certificate is a directory with tls.crt and tls.key, such as a mounted kubernetes.io/tls Secret.
	Certificate string
	Out         io.Writer
}

// ServeSecure serves viewers with a cluster token over HTTPS until ctx ends. A *app.UsageError means that an
// option must be corrected.
func ServeSecure(ctx context.Context, o SecureOptions) error {
	cert := &certificateFile{dir: o.Certificate}
	if _, err := cert.getCertificate(nil); err != nil {
		return &app.UsageError{Err: fmt.Errorf("--certificate: %w; it is a directory with tls.crt and tls.key", err)}
	}
	d, err := newAuthenticator(o, cert)
	if err != nil {
		return err
	}
	server, err := httpserver.Listen(ctx, o.Listen, httpserver.Options{
		Handler: d.newHandler(), TLS: &tls.Config{GetCertificate: cert.getCertificate}, //nolint:gosec // httpserver sets the lowest version
		MaxHeaderBytes: maxFormBytes, MaxBodyBytes: maxFormBytes, MaxConnections: maxBrowserConnections,
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
	go d.removeExpired(ctx)
	if err := server.Serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newAuthenticator(o SecureOptions, cert *certificateFile) (*authenticator, error) {
	hc, err := rest.HTTPClientFor(o.API)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", o.API.Host, err)
	}
	reviews := func() (tokenReviewer, error) {
		a, err := k8s.NewAccess(o.API, hc)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, token string, from netip.Addr, now time.Time) (int, error) {
			return a.Authorize(ctx, token, from, "get", AccessPath, now)
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
		loginReviewer: strangers, sessionReviewer: guests, cluster: o.Cluster, sessions: newSessionStore(), isServedHost: cert.isValidFor,
		leaderConnection: func(token string) app.Connection { return o.Leader(configForToken(o.API, token)) },
		newReader:        func(token string) (client.Reader, error) { return o.Client(configForToken(o.API, token)) },
	}, nil
}

// configForToken replaces Weir's credentials by a viewer's token.
func configForToken(rc *rest.Config, token string) *rest.Config {
	viewer := rest.AnonymousClientConfig(rc)
	viewer.BearerToken, viewer.QPS, viewer.UserAgent = token, -1, rc.UserAgent
	return viewer
}

func (a *authenticator) removeExpired(ctx context.Context) {
	for minute := time.NewTicker(time.Minute); ; {
		select {
		case <-ctx.Done():
			minute.Stop()
			return
		case now := <-minute.C:
			a.sessions.removeExpired(now)
		}
	}
}

// certificateFile is reloaded at most once a minute, on use, so renewal needs no restart.
type certificateFile struct {
	dir string

	mu      sync.Mutex
	current *tls.Certificate
	readAt  time.Time
}

func (c *certificateFile) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && time.Since(c.readAt) < time.Minute {
		return c.current, nil
	}
	c.readAt = time.Now()
	found, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "tls.crt"), filepath.Join(c.dir, "tls.key"))
	if err == nil {
		c.current = &found
	} else if c.current == nil {
		return nil, err
	}
	return c.current, nil
}

func (c *certificateFile) isValidFor(host string) bool {
	got, err := c.getCertificate(nil)
	return err == nil && got.Leaf.VerifyHostname(host) == nil
}
