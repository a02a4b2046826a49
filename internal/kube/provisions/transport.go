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

// outward says which addresses a target may have. One of a kubeconfig is never on loopback.
type outward struct {
	// here is whether the target is this cluster, whose address an administrator has set.
	here bool
	// own is whether the target may have another address of this machine than one of loopback, as in a lab.
	own bool
	// write waits until a write to this cluster may be sent; nil for another cluster.
	write func(context.Context) error
	// turn is that of answers.Bounds; nil waits for nothing.
	turn func(context.Context) (until time.Time, end func(), err error)
	// dial makes a connection; nil is by TCP, past control.
	dial dial
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// connects makes connections to targets, and to no other address.
func (o outward) connects() dial {
	if o.dial != nil {
		return o.dial
	}
	return (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: o.control}).DialContext
}

// platform is the address at which Azure serves each machine for itself; translated are those by
// which NAT64 leads to any address of IPv4.
var (
	platform   = netip.MustParseAddr("168.63.129.16")
	translated = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}
)

// control is asked before each connection, once names are resolved.
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

// own reports whether an address is one of this process's machine, or of its pod.
func own(ip netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // nobody knows
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		is, err := netip.ParsePrefix(a.String())
		return err == nil && is.Addr().Unmap() == ip
	})
}

// client makes the client of an attempt: whatever it asks ends with the attempt's context, follows
// no redirect, and reads no more than package answers lets it. It is made by hand because client-go keeps
// connections of equal configurations for as long as the process lasts.
func (o outward) client(ctx context.Context, cfg *rest.Config) (*http.Client, *within, error) {
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, nil, errors.New("its certificates cannot be read")
	}
	wire := utilnet.SetTransportDefaults(&http.Transport{ // HTTP/2 with pings, so that a dead connection is found out
		TLSClientConfig: secure, DialContext: o.connects(), TLSHandshakeTimeout: 30 * time.Second,
		DisableCompression: cfg.DisableCompression, MaxResponseHeaderBytes: maxHeaders,
	})
	wire.Proxy = nil // that of the environment: by it, addresses would be reached that control never sees
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
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 64 << 10
	// requestTimeout bounds a request to a target, its answer included. A step holds no memory for longer.
	requestTimeout = 5 * time.Minute
)

var errSlow = fmt.Errorf("the target has not answered a request within %s", requestTimeout)

// within is a transport whose requests end with a context, also those that have none of their own:
// discovery does not. What a server asks to wait is kept from client-go, which would sleep for that
// long and heed no context: the attempt ends, and the next one begins no sooner.
type within struct {
	next *http.Transport
	ctx  context.Context //nolint:containedctx // it is that of the attempt, which the transport does not outlive

	bounds answers.Bounds
	write  func(context.Context) error // as of outward

	mu        sync.Mutex
	notBefore time.Time
}

// RoundTrip implements http.RoundTripper.
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
	if err == nil && ctx.Err() != nil { // net/http takes an answer that comes while it closes the connection
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

// note keeps what a refusal asks for.
func (w *within) note(header http.Header) {
	at, named := backoff.RetryAfter(header, time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if named && at.After(w.notBefore) {
		w.notBefore = at
	}
}

// until is the latest time that the server named.
func (w *within) until() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notBefore
}

// WrappedRoundTripper lets client-go find the transport below.
func (w *within) WrappedRoundTripper() http.RoundTripper { return w.next }
