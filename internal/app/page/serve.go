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
	"weir.dev/weir/internal/httpserver"
	"weir.dev/weir/internal/operator"
)

const (
	// maxBrowserConnections is enough for 50 viewers: a browser opens up to six.
	maxBrowserConnections = 300
	// idleTimeout keeps a connection from one poll of the page to the next.
	idleTimeout = 2 * time.Minute
)

// Options are what weir page is started with.
type Options struct {
	// API is asked with the rights of whoever started it: who looks sees what they may see.
	API client.Reader
	// Namespace is the one that is shown; empty is all.
	Namespace string
	// Cluster is what whoever started it calls the cluster.
	Cluster string
	// Listen is an address of this machine alone.
	Listen string
	// Narrow is where the sheets of one namespace are, if not by a flag.
	Narrow string
	// Way is how the leader is reached, which knows the requests to Azure.
	Way app.Way
	// Out hears where the page is.
	Out io.Writer
}

// Serve answers browsers of this machine until ctx ends. A *app.UsageError is an address that has to be corrected.
func Serve(ctx context.Context, o Options) error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return &app.UsageError{Err: fmt.Errorf("--listen %q: want an address such as 127.0.0.1:8030", o.Listen)}
	}
	if !operator.Loopback(host) {
		return &app.UsageError{Err: fmt.Errorf("--listen %q: only an address of this machine alone, such as 127.0.0.1:8030, for the page shows what you may see; from elsewhere: ssh -L 8030:127.0.0.1:8030 HOST", o.Listen)}
	}
	if at, err := url.Parse(o.Way.Server); err != nil || at.Scheme != "http" || at.Host == "" {
		return &app.UsageError{Err: fmt.Errorf("--server %q: want a URL such as %s", o.Way.Server, app.LeaderServer)}
	}
	token := rand.Text()
	server, err := httpserver.Listen(ctx, o.Listen, httpserver.Options{
		Handler: guard(token, newSheets(o, "/"+token+"/", newCache())), MaxConnections: maxBrowserConnections,
		WriteTimeout: gatherTimeout + 30*time.Second, IdleTimeout: idleTimeout,
	})
	if err != nil {
		return fmt.Errorf("--listen: %w; another port is --listen %s", err, net.JoinHostPort(host, "0"))
	}
	if _, err := fmt.Fprintf(o.Out, "Weir's page: http://%s/%s/\nWho has this address sees what you may see. Ctrl-C ends it.\n", server.Listener.Addr(), token); err != nil {
		_ = server.Listener.Close() // nobody could know of it
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // whoever looks has seen what there was
	if err := server.Serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
