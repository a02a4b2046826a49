// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const redialInterval = time.Second

// Connection tracks the connection to the API server. A GET that cannot connect is retried until it can
// or its context ends: informers would back off up to a minute instead. Other retries are
// client-go's: see docs/reference/retries.md.
type Connection struct {
	// Watches are the watches of the kinds that affect pool members.
	Watches Watches

	log *slog.Logger
	// stopping is closed when the process ends; reads stop waiting then.
	stopping <-chan struct{}

	mu           sync.Mutex
	disconnected bool
	// onReconnected is called after a reconnect, onHealthy with each response of a healthy server.
	onReconnected, onHealthy func()
}

// NewConnection returns a connection tracker. Reads wait at most until ctx, the context of the process,
// is done: some requests have no context.
func NewConnection(ctx context.Context, log *slog.Logger) *Connection {
	return &Connection{log: log, stopping: ctx.Done()}
}

// ClientConfig disables client-go's limit of 5 QPS, which would delay status writes; the server's
// priority and fairness applies.
func (c *Connection) ClientConfig(cfg *rest.Config, userAgent string) *rest.Config {
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &retryTransport{next, c} })
	return rest.AddUserAgent(cfg, userAgent)
}

// SetCallbacks sets the callbacks for a reconnect and for responses of a healthy server.
func (c *Connection) SetCallbacks(back, well func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onReconnected, c.onHealthy = back, well
}

func (c *Connection) recordResult(req *http.Request, err error) {
	c.mu.Lock()
	changed := c.disconnected != (err != nil)
	c.disconnected = err != nil
	fn := c.onReconnected
	c.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		c.log.Warn("the API server cannot be reached; reads wait, and nothing is written to Azure that cannot be recorded", "host", req.URL.Host, "err", err)
	default:
		c.log.Info("the API server responds again", "host", req.URL.Host)
		if fn != nil {
			fn()
		}
	}
}

func (c *Connection) notifyHealthy(res *http.Response) {
	c.mu.Lock()
	fn := c.onHealthy
	c.mu.Unlock()
	if fn != nil && res.StatusCode < http.StatusInternalServerError && res.StatusCode != http.StatusTooManyRequests {
		fn()
	}
}

type retryTransport struct {
	next       http.RoundTripper
	connection *Connection
}

// RoundTrip implements http.RoundTripper.
func (r *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		res, err := r.next.RoundTrip(req)
		if err == nil {
			r.connection.recordResult(req, nil)
			r.connection.notifyHealthy(res)
			r.connection.trackWatch(req, res)
			return res, nil
		}
		// A canceled context also fails a dial and must not count as a lost connection.
		if !isDialError(err) || req.Context().Err() != nil {
			return nil, err
		}
		r.connection.recordResult(req, err)
		if req.Method != http.MethodGet {
			return nil, err
		}
		pause := time.NewTimer(redialInterval)
		select {
		case <-pause.C:
			continue
		case <-req.Context().Done():
		case <-r.connection.stopping:
		}
		pause.Stop()
		return nil, err
	}
}

// WrappedRoundTripper gives client-go access to the inner transport.
func (r *retryTransport) WrappedRoundTripper() http.RoundTripper { return r.next }

// isDialError reports whether no connection could be made. net/http reports a TLS handshake timeout
// only as text.
func isDialError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || strings.Contains(err.Error(), "TLS handshake timeout")
}
