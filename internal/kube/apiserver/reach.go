// SPDX-License-Identifier: Apache-2.0

package apiserver

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

	"weir.dev/weir/internal/removal"
)

// redial is how often a connection to the API server is tried that cannot be made.
const redial = time.Second

// Reach is the way to the API server. A read that no connection can be made for waits
// until one can be, or until its context ends: it has not left yet. Otherwise the
// informers would wait instead, longer and longer, up to a minute, and see what
// changed that much after everybody else. A write is not held: who sent it decides.
//
// Whatever else happens to a request is client-go's to ask again: see
// docs/reference/retries.md.
type Reach struct {
	// Watches are those of the kinds that decide who is a member of a pool.
	Watches removal.Watches

	log *slog.Logger
	// stopping is done when the process has to end: then no read waits any more.
	stopping <-chan struct{}

	mu sync.Mutex
	// lost is true from the first connection that could not be made to the next answer.
	lost bool
	// onBack is called with that answer, onWell with each that shows a server at work.
	onBack, onWell func()
}

// NewReach returns a way that says in the log when it is lost and when it is back. Reads
// wait as long as the context lasts, which is that of the process: some have none of their
// own.
func NewReach(ctx context.Context, log *slog.Logger) *Reach {
	return &Reach{log: log, stopping: ctx.Done()}
}

// Config completes a configuration of clients, and returns it. It names us to the
// server, and leaves it to that server's priority and fairness to limit us: client-go's
// own limit of five requests a second would hold up the record that every write has to
// wait for.
func (r *Reach) Config(cfg *rest.Config, userAgent string) *rest.Config {
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &waiting{next, r} })
	return rest.AddUserAgent(cfg, userAgent)
}

// Notify sets what is called when the API server can be reached again, and whenever it
// answers as one that is well does.
func (r *Reach) Notify(back, well func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onBack, r.onWell = back, well
}

// notes an answer, or that there was no way to get one.
func (r *Reach) notes(req *http.Request, err error) {
	r.mu.Lock()
	changed := r.lost != (err != nil)
	r.lost = err != nil
	fn := r.onBack
	r.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		r.log.Warn("the API server cannot be reached; reads wait, and nothing is written to Azure that cannot be recorded", "host", req.URL.Host, "err", err)
	default:
		r.log.Info("the API server answers again", "host", req.URL.Host)
		if fn != nil {
			fn()
		}
	}
}

// rates tells of an answer that is neither 429 nor 5xx.
func (r *Reach) rates(res *http.Response) {
	r.mu.Lock()
	fn := r.onWell
	r.mu.Unlock()
	if fn != nil && res.StatusCode < http.StatusInternalServerError && res.StatusCode != http.StatusTooManyRequests {
		fn()
	}
}

// waiting is a transport over which reads wait for a connection.
type waiting struct {
	next  http.RoundTripper
	reach *Reach
}

// RoundTrip implements http.RoundTripper.
func (w *waiting) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		res, err := w.next.RoundTrip(req)
		if err == nil {
			w.reach.notes(req, nil)
			w.reach.rates(res)
			w.reach.watched(req, res)
			return res, nil
		}
		// A context that ended makes a dial fail, too, and says nothing about the way.
		if !neverLeft(err) || req.Context().Err() != nil {
			return nil, err
		}
		w.reach.notes(req, err)
		if req.Method != http.MethodGet {
			return nil, err
		}
		pause := time.NewTimer(redial)
		select {
		case <-pause.C:
			continue
		case <-req.Context().Done():
		case <-w.reach.stopping:
		}
		pause.Stop()
		return nil, err
	}
}

// WrappedRoundTripper lets client-go find the transport below.
func (w *waiting) WrappedRoundTripper() http.RoundTripper { return w.next }

// neverLeft reports whether an error says that no connection could be made. Behind a
// partition that swallows packets it may be the handshake that does not end; net/http
// shows no more of that than these words.
func neverLeft(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || strings.Contains(err.Error(), "TLS handshake timeout")
}
