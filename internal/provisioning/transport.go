// SPDX-License-Identifier: Apache-2.0

package provisioning

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

	"weir.dev/weir/internal/ratelimit"
)

// dialPolicy restricts target addresses. A kubeconfig may never lead to loopback.
type dialPolicy struct {
	// isLocal is set if the target is this cluster. The administrator chose its address.
	isLocal bool
	// allowHost allows non-loopback addresses of this machine, as in a lab.
	allowHost bool
	// write waits for the write limiter; nil for other clusters.
	write func(context.Context) error
	// acquireTurn waits to read a large response; nil does not wait.
	acquireTurn func(context.Context) (until time.Time, end func(), err error)
	// dial opens a connection; nil means TCP with an address check.
	dial dial
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialPolicy) dialFunc() dial {
	if d.dial != nil {
		return d.dial
	}
	return (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: d.checkAddress}).DialContext
}

// platform is Azure's wire server address. The prefixes are those of NAT64, which can lead to any
// IPv4 address.
var (
	wireServer  = netip.MustParseAddr("168.63.129.16")
	natPrefixes = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}
)

// checkAddress rejects forbidden addresses after name resolution.
func (d dialPolicy) checkAddress(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	ip = ip.Unmap().WithZone("")
	if ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip == wireServer || slices.ContainsFunc(natPrefixes, func(p netip.Prefix) bool { return p.Contains(ip) }) ||
		!d.isLocal && (ip.IsLoopback() || !d.allowHost && isHostAddress(ip)) {
		return fmt.Errorf("%s belongs to the machine on which Weir runs, and is no target", ip)
	}
	return nil
}

func isHostAddress(ip netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true // unknown: reject
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}

// newClient creates the HTTP client of an attempt. It follows no redirects. client-go's own transports
// are cached for the life of the process.
func (d dialPolicy) newClient(ctx context.Context, cfg *rest.Config) (*http.Client, *attemptTransport, error) {
	secure, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, nil, errors.New("its certificates cannot be read")
	}
	wire := utilnet.SetTransportDefaults(&http.Transport{ // HTTP/2 pings detect dead connections
		TLSClientConfig: secure, DialContext: d.dialFunc(), TLSHandshakeTimeout: 30 * time.Second,
		DisableCompression: cfg.DisableCompression, MaxResponseHeaderBytes: maxHeaderBytes,
	})
	wire.Proxy = nil // a proxy from the environment would bypass the address check
	in := &attemptTransport{next: wire, ctx: ctx, write: d.write}
	if d.acquireTurn != nil {
		in.bounds.AcquireTurn = func() (time.Time, func(), error) { return d.acquireTurn(ctx) }
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
	maxHeaderBytes = 64 << 10
	// requestTimeout includes the response body.
	requestTimeout = 5 * time.Minute
)

var errRequestTimeout = fmt.Errorf("the target has not responded to a request within %s", requestTimeout)

// attemptTransport ends every request with ctx, even those without a context, such as discovery. It removes
// Retry-After, for which client-go would sleep ignoring the context; the next attempt honors it.
type attemptTransport struct {
	next *http.Transport
	ctx  context.Context //nolint:containedctx // it is that of the attempt, which the transport does not outlive

	bounds targetLimits
	write  func(context.Context) error

	mu        sync.Mutex
	notBefore time.Time
}

func (a *attemptTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	bound, err := a.bounds.LimitFor(req.URL.Path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stopTimer := time.AfterFunc(requestTimeout, func() { cancel(errRequestTimeout) }).Stop
	stopWithin := context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })
	stop := func() { stopTimer(); stopWithin() }
	if a.write != nil && req.Method != http.MethodGet {
		if err := a.write(ctx); err != nil {
			stop()
			cancel(nil)
			return nil, err
		}
	}
	res, err := a.next.RoundTrip(req.WithContext(ctx))
	if err != nil && errors.Is(context.Cause(ctx), errRequestTimeout) {
		err = errRequestTimeout
	}
	if err == nil && ctx.Err() != nil { // net/http may return a response although ctx is done
		_ = res.Body.Close()
		err = context.Cause(ctx)
	}
	end := func() { stop(); cancel(nil) }
	if err == nil {
		err = bound.LimitBody(res, end)
	}
	if err != nil {
		end()
		return nil, err
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError {
		a.recordRetryAfter(res.Header)
	}
	res.Header.Del("Retry-After")
	if err := checkKubernetes(res); err != nil {
		_ = res.Body.Close()
		end()
		return nil, err
	}
	return res, nil
}

func (a *attemptTransport) recordRetryAfter(header http.Header) {
	at, named := ratelimit.RetryAfter(header, time.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	if named && at.After(a.notBefore) {
		a.notBefore = at
	}
}

func (a *attemptTransport) retryAfter() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.notBefore
}

func (a *attemptTransport) WrappedRoundTripper() http.RoundTripper { return a.next }
