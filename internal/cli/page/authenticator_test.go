// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
)

// authenticatorOf accepts users whose token is their name; each can read a pool of that name.
func authenticatorOf(t *testing.T) (*authenticator, map[string]int) {
	t.Helper()
	status := map[string]int{"anna": 200, "bert": 200, "nobody": 403, "late": 503, "crowd": 429}
	review := func(_ context.Context, token string, _ netip.Addr, _ time.Time) (int, error) {
		if s, ok := status[token]; ok {
			return s, nil
		}
		return http.StatusUnauthorized, nil
	}
	return &authenticator{
		loginReviewer: func(ctx context.Context, token string, from netip.Addr, now time.Time) (int, error) {
			if !from.IsValid() { // must be limited per source
				return http.StatusTooManyRequests, nil
			}
			return review(ctx, token, from, now)
		},
		sessionReviewer: func(ctx context.Context, token string, from netip.Addr, now time.Time) (int, error) {
			if from.IsValid() { // must not be limited per source: viewers may share a proxy
				return http.StatusTooManyRequests, nil
			}
			return review(ctx, token, from, now)
		},
		sessions: newSessionStore(), isServedHost: func(host string) bool { return host == "weir.example" },
		leaderConnection: func(token string) app.Connection {
			return app.Connection{Server: app.LeaderServer, Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, fmt.Errorf("asked as %s", token)
			}}
		},
		newReader: func(token string) (client.Reader, error) {
			if token == "" {
				return nil, errors.New("no token")
			}
			return server(lease(), poolOf("shop", token, "kubernetes", "InSync", "", 1, 1), poolOf("other", token, "kubernetes", "InSync", "", 1, 1)), nil
		},
	}, status
}

type asking struct {
	method, path, host, bearer, cookie, token, namespace, site string
}

func (a asking) of(h http.Handler) *httptest.ResponseRecorder {
	form := url.Values{"token": {a.token}, "namespace": {a.namespace}}
	r := httptest.NewRequest(a.method, "/", strings.NewReader(form.Encode()))
	r.URL.Path, r.Host = a.path, a.host
	if r.Host == "" {
		r.Host = "weir.example"
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range map[string]string{"Authorization": a.bearer, "Sec-Fetch-Site": a.site} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if a.cookie != "" {
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: a.cookie})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// signsIn signs in and returns the cookie.
func signsIn(t *testing.T, h http.Handler, token string) string {
	t.Helper()
	w := asking{method: "POST", path: "/login", token: token, site: "same-origin"}.of(h)
	set := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(set) != 1 {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if c := set[0]; c.Name != sessionCookie || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || strings.Contains(c.Value, token) {
		t.Errorf("%+v", c)
	}
	return set[0].Value
}

func TestAuthenticatedRequests(t *testing.T) {
	d, _ := authenticatorOf(t)
	h := d.newHandler()
	anna := signsIn(t, h, "anna")
	for name, tt := range map[string]struct {
		asking
		status          int
		wantText, never string
	}{
		"nobody":                      {asking{method: "GET", path: "/"}, 401, "Sign in", "kubernetes"},
		"nobody, of a namespace":      {asking{method: "GET", path: "/in/shop/pools"}, 401, `value="shop"`, "kubernetes"},
		"nobody, of a pool":           {asking{method: "GET", path: "/pool/shop/anna"}, 401, "Sign in", "kubernetes"},
		"the style":                   {asking{method: "GET", path: "/page.css"}, 200, "color-scheme", ""},
		"a token in each request":     {asking{method: "GET", path: "/pools", bearer: "Bearer anna"}, 200, "shop/anna", "bert"},
		"another viewer":              {asking{method: "GET", path: "/pools", bearer: "Bearer bert"}, 200, "shop/bert", "anna"},
		"a cookie":                    {asking{method: "GET", path: "/pools", cookie: anna}, 200, "shop/anna", "bert"},
		"one namespace":               {asking{method: "GET", path: "/in/shop/pools", cookie: anna}, 200, "shop/anna", "other/anna"},
		"another namespace":           {asking{method: "GET", path: "/in/other/pools", cookie: anna}, 200, "other/anna", "shop/anna"},
		"no namespace":                {asking{method: "GET", path: "/in/sh op/pools", cookie: anna}, 404, "no name", "anna"},
		"a made-up cookie":            {asking{method: "GET", path: "/pools", cookie: "ABC"}, 401, "Sign in", "anna"},
		"a token as a cookie":         {asking{method: "GET", path: "/pools", cookie: "anna"}, 401, "Sign in", "shop"},
		"a token's hash as a cookie":  {asking{method: "GET", path: "/pools", cookie: tokenKey("anna")}, 401, "Sign in", "shop"},
		"an unknown token":            {asking{method: "GET", path: "/pools", bearer: "Bearer eve"}, 401, "Sign in", "eve"},
		"no bearer":                   {asking{method: "GET", path: "/pools", bearer: "Basic anna"}, 401, "Sign in", "anna"},
		"a token in the address":      {asking{method: "GET", path: "/pools?token=anna"}, 401, "Sign in", "kubernetes"},
		"who may not look":            {asking{method: "GET", path: "/pools", bearer: "Bearer nobody"}, 403, "weir-page-viewer", "kubernetes"},
		"an API server that is away":  {asking{method: "GET", path: "/pools", bearer: "Bearer late"}, 503, "could not review this token", "kubernetes"},
		"too many strangers":          {asking{method: "GET", path: "/pools", bearer: "Bearer crowd"}, 429, "Too many", "kubernetes"},
		"a wrong token in the form":   {asking{method: "POST", path: "/login", token: "eve"}, 401, "does not know this token", "eve"},
		"a form of another site":      {asking{method: "POST", path: "/login", token: "anna", site: "cross-site"}, 403, "", "kubernetes"},
		"a sign-out by another site":  {asking{method: "POST", path: "/logout", cookie: anna, site: "cross-site"}, 403, "", "kubernetes"},
		"no namespace in the form":    {asking{method: "POST", path: "/login", token: "anna", namespace: "//evil.example"}, 400, "no name of a namespace", "evil"},
		"another name for this host":  {asking{method: "GET", path: "/pools", host: "evil.example", cookie: anna}, 421, "certificate", "anna"},
		"by a forwarded port":         {asking{method: "GET", path: "/pools", host: "localhost:8443", cookie: anna}, 200, "shop/anna", ""},
		"a write":                     {asking{method: "POST", path: "/pools", cookie: anna}, 405, "nothing to write", "anna"},
		"requests to Azure":           {asking{method: "GET", path: "/calls", cookie: anna}, 502, "asked as anna", "bert"},
		"of a namespace's page":       {asking{method: "GET", path: "/in/shop/calls", bearer: "Bearer bert"}, 502, "asked as bert", "anna"},
		"the form, though signed in":  {asking{method: "GET", path: "/login", cookie: anna}, 401, "Sign in", "anna"},
		"a very long token in a form": {asking{method: "POST", path: "/login", token: strings.Repeat("a", maxFormBytes)}, 401, "Sign in", "aaaaaaaa"},
	} {
		w := tt.of(h)
		if body := w.Body.String(); w.Code != tt.status || !strings.Contains(body, tt.wantText) || tt.never != "" && strings.Contains(body, tt.never) || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, want %d with %q and without %q: %v\n%s", name, w.Code, tt.status, tt.wantText, tt.never, w.Header(), body)
		}
		if got := w.Header().Get("WWW-Authenticate"); (got != "") != (tt.status == 401) {
			t.Errorf("%s: WWW-Authenticate %q", name, got)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || w.Header().Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}

// A revoked token ends the session at the next review; signing in again needs a token.
func TestUnauthenticatedRequests(t *testing.T) {
	d, status := authenticatorOf(t)
	h := d.newHandler()
	sees := func(cookie string) int { return asking{method: "GET", path: "/pools", cookie: cookie}.of(h).Code }
	anna, bert := signsIn(t, h, "anna"), signsIn(t, h, "bert")
	for _, away := range []int{503, 429} {
		if status["anna"] = away; sees(anna) != away {
			t.Errorf("while the API server answers %d she sees: %d", away, sees(anna))
		}
	}
	if status["anna"] = 200; sees(anna) != 200 {
		t.Error("an API server that is away puts nobody out")
	}
	for _, out := range []int{401, 403} {
		status["anna"] = out
		if got := sees(anna); got != out {
			t.Errorf("%d, want %d", got, out)
		}
		status["anna"] = 200
		if got := sees(anna); got != 401 {
			t.Errorf("after that %d: her cookie stands for nothing any more", got)
		}
		anna = signsIn(t, h, "anna")
	}
	if w := (asking{method: "POST", path: "/logout", cookie: bert, site: "same-origin"}).of(h); w.Code != http.StatusSeeOther || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if sees(bert) != 401 || sees(anna) != 200 {
		t.Errorf("bert %d, anna %d", sees(bert), sees(anna))
	}
}

// Only the most recent viewers have a cache in memory.
func TestCachedPagesAreBounded(t *testing.T) {
	now := time.Now()
	v := newSessionStore()
	var keys []string
	for i := range 2 * maxCachedSessions {
		now = now.Add(time.Second)
		keys = append(keys, v.startSession("", "", nil, now))
		single, _ := v.findSession(keys[i], now)
		if _, err := getCached(t.Context(), single.cache, "front", func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for i, key := range keys {
		if ok := !v.sessions[key].cache.isEmpty(); ok != (i >= maxCachedSessions) {
			t.Errorf("of viewer %d is in memory what was gathered: %v", i, ok)
		}
	}
}

// Sessions expire, and their number is limited: the least recently used one is evicted.
func TestSessionsExpire(t *testing.T) {
	now := time.Now()
	v := newSessionStore()
	key := v.startSession("", "anna", nil, now)
	for at := time.Duration(0); at < sessionTTL; at += sessionIdleTimeout - time.Second {
		if _, ok := v.findSession(key, now.Add(at)); !ok {
			t.Fatalf("gone after %s", at)
		}
	}
	if _, ok := v.findSession(key, now.Add(sessionTTL)); ok {
		t.Error("it lasts too long")
	}
	key = v.startSession("", "anna", nil, now)
	before, _ := v.findSession(key, now)
	if got, _ := v.findSession(key, now.Add(sessionCacheTTL-time.Second)); got.cache != before.cache {
		t.Error("what was gathered is gone too early")
	}
	v.removeExpired(now.Add(2 * sessionCacheTTL))
	if got, ok := v.findSession(key, now.Add(2*sessionCacheTTL)); !ok || got.cache == before.cache {
		t.Error("what was gathered stays in memory")
	}
	if v.removeExpired(now.Add(2*sessionCacheTTL + sessionIdleTimeout)); len(v.sessions) != 0 {
		t.Error("who has gone stays")
	}
	first := v.startSession("", "first", nil, now)
	for i := range maxSessions - 1 {
		v.startSession("", "another", nil, now.Add(time.Duration(i+1)*time.Second))
	}
	v.findSession(first, now.Add(time.Minute)) // becomes the most recently used
	if v.startSession("", "more", nil, now.Add(2*time.Minute)); len(v.sessions) != maxSessions {
		t.Errorf("%d visits", len(v.sessions))
	}
	if _, ok := v.findSession(first, now.Add(2*time.Minute)); !ok {
		t.Error("who looks has gone")
	}
}
