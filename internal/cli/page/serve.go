// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/observe/httpserver"
	"weir.dev/weir/internal/requestlog"
)

const (
	// maxBrowserConnections is enough for 50 viewers: a browser opens up to six.
	maxBrowserConnections = 300
	// idleTimeout spans two polls of the page.
	idleTimeout = 2 * time.Minute
)

// Options configure weir page.
type Options struct {
	// API is a client with the user's own permissions.
	API       client.Reader
	Namespace string
	Cluster   string
	Listen    string
	// Narrow names the page of one namespace; empty means the flag -n.
	Narrow string
	// Connection is the connection to the leader, which has the call log.
	Connection app.Connection
	Out        io.Writer
}

// Serve serves browsers on this machine until ctx ends. A *app.UsageError means that an address must be
// corrected.
func Serve(ctx context.Context, o Options) error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return &app.UsageError{Err: fmt.Errorf("--listen %q: want an address such as 127.0.0.1:8030", o.Listen)}
	}
	if !requestlog.IsLoopback(host) {
		return &app.UsageError{Err: fmt.Errorf("--listen %q: only an address of this machine alone, such as 127.0.0.1:8030, for the page shows what you may see; from elsewhere: ssh -L 8030:127.0.0.1:8030 HOST", o.Listen)}
	}
	if at, err := url.Parse(o.Connection.Server); err != nil || at.Scheme != "http" || at.Host == "" {
		return &app.UsageError{Err: fmt.Errorf("--operator-url %q: want a URL such as %s", o.Connection.Server, app.LeaderServer)}
	}
	token := rand.Text()
	server, err := httpserver.Listen(ctx, o.Listen, httpserver.Options{
		Handler: requireToken(token, newPageHandler(o, "/"+token+"/", newCache())), MaxConnections: maxBrowserConnections,
		WriteTimeout: gatherTimeout + 30*time.Second, IdleTimeout: idleTimeout,
	})
	if err != nil {
		return fmt.Errorf("--listen: %w; another port is --listen %s", err, net.JoinHostPort(host, "0"))
	}
	if _, err := fmt.Fprintf(o.Out, "Weir's page: http://%s/%s/\nAnyone with this address sees what you may see. Ctrl-C ends it.\n", server.Listener.Addr(), token); err != nil {
		_ = server.Listener.Close() // its URL is unknown
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // no need to drain: pages are read-only
	if err := server.Serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
