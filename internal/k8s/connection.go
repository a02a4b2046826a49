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
func (r *Connection) ClientConfig(cfg *rest.Config, userAgent string) *rest.Config {
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &retryTransport{next, r} })
	return rest.AddUserAgent(cfg, userAgent)
}

// SetCallbacks sets the callbacks for a reconnect and for responses of a healthy server.
func (r *Connection) SetCallbacks(back, well func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onReconnected, r.onHealthy = back, well
}

func (r *Connection) recordResult(req *http.Request, err error) {
	r.mu.Lock()
	changed := r.disconnected != (err != nil)
	r.disconnected = err != nil
	fn := r.onReconnected
	r.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		r.log.Warn("the API server cannot be reached; reads wait, and nothing is written to Azure that cannot be recorded", "host", req.URL.Host, "err", err)
	default:
		r.log.Info("the API server responds again", "host", req.URL.Host)
		if fn != nil {
			fn()
		}
	}
}

func (r *Connection) notifyHealthy(res *http.Response) {
	r.mu.Lock()
	fn := r.onHealthy
	r.mu.Unlock()
	if fn != nil && res.StatusCode < http.StatusInternalServerError && res.StatusCode != http.StatusTooManyRequests {
		fn()
	}
}

type retryTransport struct {
	next       http.RoundTripper
	connection *Connection
}

// RoundTrip implements http.RoundTripper.
func (w *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		res, err := w.next.RoundTrip(req)
		if err == nil {
			w.connection.recordResult(req, nil)
			w.connection.notifyHealthy(res)
			w.connection.trackWatch(req, res)
			return res, nil
		}
		// A canceled context also fails a dial and must not count as a lost connection.
		if !isDialError(err) || req.Context().Err() != nil {
			return nil, err
		}
		w.connection.recordResult(req, err)
		if req.Method != http.MethodGet {
			return nil, err
		}
		pause := time.NewTimer(redialInterval)
		select {
		case <-pause.C:
			continue
		case <-req.Context().Done():
		case <-w.connection.stopping:
		}
		pause.Stop()
		return nil, err
	}
}

// WrappedRoundTripper gives client-go access to the inner transport.
func (w *retryTransport) WrappedRoundTripper() http.RoundTripper { return w.next }

// isDialError reports whether no connection could be made. net/http reports a TLS handshake timeout
// only as text.
func isDialError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || strings.Contains(err.Error(), "TLS handshake timeout")
}
