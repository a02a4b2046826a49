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

const redial = time.Second

// Reach tracks the connection to the API server. A GET that cannot connect is retried until it can
// or its context ends: informers would back off up to a minute instead. Other retries are
// client-go's: see docs/reference/retries.md.
type Reach struct {
	// Watches are the watches of the kinds that affect pool members.
	Watches removal.Watches

	log *slog.Logger
	// stopping is closed when the process ends; reads stop waiting then.
	stopping <-chan struct{}

	mu   sync.Mutex
	lost bool
	// onBack is called after a reconnect, onWell with each response of a healthy server.
	onBack, onWell func()
}

// NewReach returns a connection tracker. Reads wait at most until ctx, the context of the process,
// is done: some requests have no context.
func NewReach(ctx context.Context, log *slog.Logger) *Reach {
	return &Reach{log: log, stopping: ctx.Done()}
}

// Config disables client-go's limit of 5 QPS, which would delay status writes; the server's
// priority and fairness applies.
func (r *Reach) Config(cfg *rest.Config, userAgent string) *rest.Config {
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &waiting{next, r} })
	return rest.AddUserAgent(cfg, userAgent)
}

// Notify sets the callbacks for a reconnect and for responses of a healthy server.
func (r *Reach) Notify(back, well func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onBack, r.onWell = back, well
}

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

func (r *Reach) rates(res *http.Response) {
	r.mu.Lock()
	fn := r.onWell
	r.mu.Unlock()
	if fn != nil && res.StatusCode < http.StatusInternalServerError && res.StatusCode != http.StatusTooManyRequests {
		fn()
	}
}

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
		// A canceled context also fails a dial and must not count as a lost connection.
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

// WrappedRoundTripper gives client-go access to the inner transport.
func (w *waiting) WrappedRoundTripper() http.RoundTripper { return w.next }

// neverLeft reports whether no connection could be made. net/http reports a TLS handshake timeout
// only as text.
func neverLeft(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || strings.Contains(err.Error(), "TLS handshake timeout")
}
