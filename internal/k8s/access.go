// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// accessTTL covers a scrape interval and bounds the effect of a revoked right.
	accessTTL     = time.Minute
	reviewTimeout = 10 * time.Second
	// readerTTL is how long after its last review an allowed request skips the limit for unknown
	// tokens.
	readerTTL = time.Hour
	maxTokens = 100
	// sourceQPS is the review rate of a source, per second.
	sourceQPS, sourceBurst, maxSources = 0.5, 5, 1000
	// maxTokenLength is in bytes, far above the API server's.
	maxTokenLength = 16 << 10
)

// MetricsAccess returns a filter that requires a token with the right to get the path.
// controller-runtime's filter would depend on k8s.io/apiserver.
func MetricsAccess(cfg *rest.Config, hc *http.Client) (metricsserver.Filter, error) {
	a, err := NewAccess(cfg, hc)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			status, err := a.Authorize(req.Context(), BearerToken(req), SourceAddress(req), strings.ToLower(req.Method), req.URL.Path, time.Now())
			if err != nil {
				log.Info("metrics are served to authenticated clients only, and the API server does not respond", "err", err.Error())
			}
			if status == http.StatusOK {
				next.ServeHTTP(w, req)
				return
			}
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, http.StatusText(status), status)
		}), nil
	}, nil
}

// Access reviews requests with the API server. Safe for concurrent use.
type Access struct {
	tokenReviews  typedauthenticationv1.TokenReviewInterface
	accessReviews typedauthorizationv1.SubjectAccessReviewInterface
	// limiter limits reviews of unknown tokens.
	limiter *rate.Limiter

	mu      sync.Mutex
	sources map[netip.Addr]*rate.Limiter
	// allowed maps allowed requests, by token and attributes, to their expiry.
	allowed map[[sha256.Size]byte]time.Time
}

// NewAccess returns an Access that reviews with the rights of cfg.
func NewAccess(cfg *rest.Config, hc *http.Client) (*Access, error) {
	tokens, err := typedauthenticationv1.NewForConfigAndClient(cfg, hc)
	if err != nil {
		return nil, fmt.Errorf("client for token reviews: %w", err)
	}
	rights, err := typedauthorizationv1.NewForConfigAndClient(cfg, hc)
	if err != nil {
		return nil, fmt.Errorf("client for access reviews: %w", err)
	}
	return &Access{
		tokenReviews: tokens.TokenReviews(), accessReviews: rights.SubjectAccessReviews(),
		limiter: rate.NewLimiter(5, 20), sources: map[netip.Addr]*rate.Limiter{}, allowed: map[[sha256.Size]byte]time.Time{},
	}, nil
}

// BearerToken returns a request's bearer token.
func BearerToken(req *http.Request) string {
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		return token
	}
	return ""
}

// SourceAddress returns a request's address. An IPv6 address is reduced to its /64, which one machine can
// use in full.
func SourceAddress(req *http.Request) netip.Addr {
	host, _, _ := net.SplitHostPort(req.RemoteAddr)
	ip, _ := netip.ParseAddr(host)
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	return ip
}

// Authorize returns the HTTP status for a request. An error accompanies a failed review.
func (a *Access) Authorize(ctx context.Context, token string, from netip.Addr, verb, path string, now time.Time) (int, error) {
	if token == "" || len(token) > maxTokenLength {
		return http.StatusUnauthorized, nil
	}
	attrs := authorizationv1.NonResourceAttributes{Path: path, Verb: verb}
	id := sha256.Sum256([]byte(attrs.Verb + " " + attrs.Path + " " + token))
	allowed, isReader := a.cached(id, now)
	if allowed {
		return http.StatusOK, nil
	}
	if !a.allowSource(from, now) || !isReader && !a.limiter.AllowN(now, 1) {
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logr.Discard()), reviewTimeout) // client-go would log bodies, which contain the token
	defer cancel()
	status, err := a.review(ctx, token, attrs)
	switch status {
	case http.StatusOK:
		a.addCached(id, now)
	case http.StatusUnauthorized, http.StatusForbidden:
		a.removeCached(id)
	}
	return status, err
}

func (a *Access) review(ctx context.Context, token string, attrs authorizationv1.NonResourceAttributes) (int, error) {
	tokenReview, err := a.tokenReviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("token review: %w", err)
	}
	if !tokenReview.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := tokenReview.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	accessReview, err := a.accessReviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, NonResourceAttributes: &attrs,
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, fmt.Errorf("access review: %w", err)
	case !accessReview.Status.Allowed:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// allowSource applies the limit per source. Requests without an address share the global limit only.
func (a *Access) allowSource(from netip.Addr, now time.Time) bool {
	if !from.IsValid() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.sources[from]
	if l == nil {
		maps.DeleteFunc(a.sources, func(_ netip.Addr, l *rate.Limiter) bool { return l.TokensAt(now) >= sourceBurst })
		if len(a.sources) >= maxSources {
			clear(a.sources) // the global limit still applies
		}
		l = rate.NewLimiter(sourceQPS, sourceBurst)
		a.sources[from] = l
	}
	return l.AllowN(now, 1)
}

// cached reports whether a request is allowed without a review, and was allowed within readerTTL.
func (a *Access) cached(id [sha256.Size]byte, now time.Time) (allowed, isReader bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, ok := a.allowed[id]
	return now.Before(until), ok && now.Before(until.Add(readerTTL))
}

func (a *Access) removeCached(id [sha256.Size]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.allowed, id)
}

func (a *Access) addCached(id [sha256.Size]byte, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ttl := readerTTL
	if len(a.allowed) >= maxTokens {
		ttl = 0
	}
	maps.DeleteFunc(a.allowed, func(_ [sha256.Size]byte, until time.Time) bool { return !now.Before(until.Add(ttl)) })
	if len(a.allowed) < maxTokens {
		a.allowed[id] = now.Add(accessTTL)
	}
}
