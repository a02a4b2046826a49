// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/kube/answers"
)

// outward restricts target addresses. A kubeconfig may never lead to loopback.
type outward struct {
	// here is set if the target is this cluster. The administrator chose its address.
	here bool
	// own allows non-loopback addresses of this machine, as in a lab.
	own bool
	// write waits for the write limiter; nil for other clusters.
	write func(context.Context) error
	// turn waits to read a large response; nil does not wait.
	turn func(context.Context) (until time.Time, end func(), err error)
	// dial opens a connection; nil means TCP with an address check.
	dial dial
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

func (o outward) connects() dial {
	if o.dial != nil {
		return o.dial
	}
	return (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: o.control}).DialContext
}

// platform is Azure's wire server address. The prefixes are those of NAT64, which can lead to any
// IPv4 address.
var (
	platform   = netip.MustParseAddr("168.63.129.16")
	translated = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}
)

// control rejects forbidden addresses after name resolution.
func (o outward) control(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	ip = ip.Unmap().WithZone("")
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip == platform || slices.ContainsFunc(translated, func(p netip.Prefix) bool { return p.Contains(ip) }) ||
		!o.here && (ip.IsLoopback() || !o.own && own(ip)) {
		return fmt.Errorf("%s belongs to the machine on which Weir runs, and is no target", ip)
	}
	return nil
}

func own(ip netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // unknown: reject
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		is, err := netip.ParsePrefix(a.String())
		return err == nil && is.Addr().Unmap() == ip
	})
}

// client creates the HTTP client of an attempt. It follows no redirects. client-go's own transports
// are cached for the life of the process.
func (o outward) client(ctx context.Context, cfg *rest.Config) (*http.Client, *within, error) {
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, nil, errors.New("its certificates cannot be read")
	}
	wire := utilnet.SetTransportDefaults(&http.Transport{ // HTTP/2 pings detect dead connections
		TLSClientConfig: secure, DialContext: o.connects(), TLSHandshakeTimeout: 30 * time.Second,
		DisableCompression: cfg.DisableCompression, MaxResponseHeaderBytes: maxHeaders,
	})
	wire.Proxy = nil // a proxy from the environment would bypass the address check
	in := &within{next: wire, ctx: ctx, write: o.write}
	if o.turn != nil {
		in.bounds.Turn = func() (time.Time, func(), error) { return o.turn(ctx) }
	}
	if server, err := url.Parse(cfg.Host); err == nil {
		in.bounds.Base = strings.TrimSuffix(server.Path, "/")
	}
	rt, err := rest.HTTPWrappersForConfig(cfg, in)
	if err != nil {
		return nil, nil, errors.New("its credentials cannot be used")
	}
	hc := &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return hc, in, nil
}

const (
	maxHeaders = 64 << 10
	// requestTimeout includes the response body.
	requestTimeout = 5 * time.Minute
)

var errSlow = fmt.Errorf("the target has not answered a request within %s", requestTimeout)

// within ends every request with ctx, even those without a context, such as discovery. It removes
// Retry-After, for which client-go would sleep ignoring the context; the next attempt honors it.
type within struct {
	next *http.Transport
	ctx  context.Context //nolint:containedctx // it is that of the attempt, which the transport does not outlive

	bounds answers.Bounds
	write  func(context.Context) error

	mu        sync.Mutex
	notBefore time.Time
}

func (w *within) RoundTrip(req *http.Request) (*http.Response, error) {
	bound, err := w.bounds.Of(req.URL.Path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stopTimer := time.AfterFunc(requestTimeout, func() { cancel(errSlow) }).Stop
	stopWithin := context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })
	stop := func() { stopTimer(); stopWithin() }
	if w.write != nil && req.Method != http.MethodGet {
		if err := w.write(ctx); err != nil {
			stop()
			cancel(nil)
			return nil, err
		}
	}
	res, err := w.next.RoundTrip(req.WithContext(ctx))
	if err != nil && errors.Is(context.Cause(ctx), errSlow) {
		err = errSlow
	}
	if err == nil && ctx.Err() != nil { // net/http may return a response although ctx is done
		_ = res.Body.Close()
		err = context.Cause(ctx)
	}
	end := func() { stop(); cancel(nil) }
	if err == nil {
		err = bound.Hold(res, end)
	}
	if err != nil {
		end()
		return nil, err
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError {
		w.note(res.Header)
	}
	res.Header.Del("Retry-After")
	if err := notKubernetes(res); err != nil {
		_ = res.Body.Close()
		end()
		return nil, err
	}
	return res, nil
}

func (w *within) note(header http.Header) {
	at, named := backoff.RetryAfter(header, time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if named && at.After(w.notBefore) {
		w.notBefore = at
	}
}

func (w *within) until() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notBefore
}

func (w *within) WrappedRoundTripper() http.RoundTripper { return w.next }
