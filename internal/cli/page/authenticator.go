// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/requestlog"
)

const (
	// AccessPath is the path that viewers need permission to get; config/page has the role.
	AccessPath = "/weir/page"
	// sessionCookie is a __Host- cookie: sent only over HTTPS to this host.
	sessionCookie   = "__Host-weir-page"
	namespacePrefix = "/in/"
	// maxFormBytes is the maximum size of a login form, in bytes; tokens are shorter.
	maxFormBytes = 32 << 10
)

// tokenReviewer authorizes a token sent from an address and returns an HTTP status.
type tokenReviewer func(ctx context.Context, token string, from netip.Addr, now time.Time) (int, error)

// authenticator admits viewers with a cluster token and reads with that token, so RBAC decides what they see.
type authenticator struct {
	// Separate reviewers for sign-in and for sessions: guessing tokens does not use up the limits of existing
	// sessions.
	loginReviewer, sessionReviewer tokenReviewer

	newReader func(token string) (client.Reader, error)
	// leaderConnection returns the connection to the leader with that token.
	leaderConnection func(token string) app.Connection
	// isServedHost reports whether the certificate covers a host.
	isServedHost func(host string) bool
	cluster      string
	sessions     *sessionStore
}

func (a *authenticator) newHandler() http.Handler {
	mux := http.NewServeMux()
	for name, kind := range staticFiles {
		mux.HandleFunc("GET /"+name, serveStatic(name, kind))
	}
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { a.showLogin(w, r, http.StatusUnauthorized, "") })
	mux.HandleFunc("POST /login", a.handleLogin)
	mux.HandleFunc("POST /logout", a.handleLogout)
	mux.HandleFunc("/", a.servePage)
	sameOrigin := http.NewCrossOriginProtection().Handler(mux) // rejects forms of other sites
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range securityHeaders {
			w.Header().Set(name, value)
		}
		if host := requestlog.HostWithoutPort(r.Host); !requestlog.IsLoopback(host) && !a.isServedHost(host) {
			http.Error(w, "use a name that the certificate has", http.StatusMisdirectedRequest)
			return
		}
		sameOrigin.ServeHTTP(w, r)
	})
}

// handleLogin exchanges the token of a form for a session cookie, valid only here.
func (a *authenticator) handleLogin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	token, namespace := strings.TrimSpace(r.PostFormValue("token")), strings.TrimSpace(r.PostFormValue("namespace")) //nolint:gosec // the body is bounded
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		a.showLogin(w, r, http.StatusBadRequest, "That is no name of a namespace.")
		return
	}
	key, status := a.startSession(r, "", token)
	if status != http.StatusOK {
		a.showLogin(w, r, status, "")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: key, Path: "/", MaxAge: int(sessionTTL.Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	to := "/"
	if namespace != "" {
		to = namespacePrefix + namespace + "/"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (a *authenticator) handleLogout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(sessionCookie); err == nil {
		a.sessions.endSession(c.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (a *authenticator) startSession(r *http.Request, key, token string) (string, int) {
	now := time.Now()
	status, _ := a.loginReviewer(r.Context(), token, k8s.SourceAddress(r), now) // the status tells the viewer what to do
	if status != http.StatusOK {
		return "", status
	}
	api, err := a.newReader(token)
	if err != nil {
		return "", http.StatusServiceUnavailable
	}
	return a.sessions.startSession(key, token, api, now), http.StatusOK
}

func (a *authenticator) servePage(w http.ResponseWriter, r *http.Request) {
	v, status := a.findSession(r)
	if status != http.StatusOK {
		a.showLogin(w, r, status, "")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "there is nothing to write here", http.StatusMethodNotAllowed)
		return
	}
	o := Options{API: v.api, Connection: a.leaderConnection(v.token), Cluster: a.cluster, Narrow: namespacePrefix + "NAMESPACE/ on this page"}
	prefix := ""
	if rest, ok := strings.CutPrefix(r.URL.Path, namespacePrefix); ok {
		namespace, _, slash := strings.Cut(rest, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			http.Error(w, "that is no name of a namespace", http.StatusNotFound)
			return
		}
		o.Namespace, prefix = namespace, namespacePrefix+namespace
		if !slash {
			http.Redirect(w, r, prefix+"/", http.StatusSeeOther)
			return
		}
	}
	http.StripPrefix(prefix, newPageHandler(o, prefix+"/", v.cache)).ServeHTTP(w, r)
}

// findSession returns the session of a request. The API server re-authorizes it once a minute.
func (a *authenticator) findSession(r *http.Request) (session, int) {
	key, bearer := "", k8s.BearerToken(r)
	if bearer != "" {
		key = tokenKey(bearer)
	} else if c, err := r.Cookie(sessionCookie); err == nil && !strings.Contains(c.Value, " ") {
		key = c.Value
	}
	v, known := a.sessions.findSession(key, time.Now())
	if !known {
		if bearer == "" {
			return session{}, http.StatusUnauthorized
		}
		if _, status := a.startSession(r, key, bearer); status != http.StatusOK {
			return session{}, status
		}
		if v, known = a.sessions.findSession(key, time.Now()); !known { // evicted by newer sessions
			return session{}, http.StatusTooManyRequests
		}
		return v, http.StatusOK
	}
	status, _ := a.sessionReviewer(r.Context(), v.token, netip.Addr{}, time.Now()) // no source address: many viewers may share a proxy
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		a.sessions.endSession(key)
	}
	return v, status
}

func (a *authenticator) showLogin(w http.ResponseWriter, r *http.Request, status int, reason string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if reason == "" {
		reason = map[int]string{
			http.StatusForbidden:          "The API server accepts this token, but its account may not read this page: bind the ClusterRole weir-page-viewer to it.",
			http.StatusTooManyRequests:    "Too many requests at the same time: retry in a few seconds.",
			http.StatusServiceUnavailable: "The API server could not review this token: try again in a few seconds.",
		}[status]
	}
	if reason == "" && status == http.StatusUnauthorized && r.Method == http.MethodPost {
		reason = "The API server does not know this token, or it has expired."
	}
	namespace, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, namespacePrefix), "/")
	if !strings.HasPrefix(r.URL.Path, namespacePrefix) {
		namespace = ""
	}
	s := &pageServer{Options: Options{Cluster: a.cluster}, root: "/"}
	s.renderPage(w, status, "login", pageData{Title: "Sign in", Summary: reason, At: time.Now(), Still: true, Body: struct{ Why, Namespace string }{reason, namespace}})
}
