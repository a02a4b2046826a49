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
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/operator"
)

const (
	// Right is the path that viewers need permission to get; config/page has the role.
	Right = "/weir/page"
	// cookie is a __Host- cookie: sent only over HTTPS to this host.
	cookie = "__Host-weir-page"
	within = "/in/"
	// longestForm is the maximum size of a login form, in bytes; tokens are shorter.
	longestForm = 32 << 10
)

// reviewer authorizes a token sent from an address and returns an HTTP status.
type reviewer func(ctx context.Context, token string, from netip.Addr, now time.Time) (int, error)

// authenticator admits viewers with a cluster token and reads with that token, so RBAC decides what they see.
type authenticator struct {
	// Separate reviewers for sign-in and for sessions: guessing tokens does not use up the limits of existing
	// sessions.
	strangers, guests reviewer

	as func(token string) (client.Reader, error)
	// leader returns the connection to the leader with that token.
	leader func(token string) app.Way
	// named reports whether the certificate covers a host.
	named   func(host string) bool
	cluster string
	visits  *visits
}

func (d *authenticator) handler() http.Handler {
	mux := http.NewServeMux()
	for name, kind := range statics {
		mux.HandleFunc("GET /"+name, static(name, kind))
	}
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { d.ask(w, r, http.StatusUnauthorized, "") })
	mux.HandleFunc("POST /login", d.login)
	mux.HandleFunc("POST /logout", d.logout)
	mux.HandleFunc("/", d.show)
	same := http.NewCrossOriginProtection().Handler(mux) // rejects forms of other sites
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		if host := operator.HostOf(r.Host); !operator.Loopback(host) && !d.named(host) {
			http.Error(w, "ask for a name that the certificate has", http.StatusMisdirectedRequest)
			return
		}
		same.ServeHTTP(w, r)
	})
}

// login exchanges the token of a form for a session cookie, valid only here.
func (d *authenticator) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	token, namespace := strings.TrimSpace(r.PostFormValue("token")), strings.TrimSpace(r.PostFormValue("namespace")) //nolint:gosec // the body is bounded
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		d.ask(w, r, http.StatusBadRequest, "That is no name of a namespace.")
		return
	}
	key, status := d.admit(r, "", token)
	if status != http.StatusOK {
		d.ask(w, r, status, "")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: key, Path: "/", MaxAge: int(visitLasts.Seconds()), Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	to := "/"
	if namespace != "" {
		to = within + namespace + "/"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (d *authenticator) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookie); err == nil {
		d.visits.end(c.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (d *authenticator) admit(r *http.Request, key, token string) (string, int) {
	now := time.Now()
	status, _ := d.strangers(r.Context(), token, apiserver.Source(r), now) // the status tells the viewer what to do
	if status != http.StatusOK {
		return "", status
	}
	api, err := d.as(token)
	if err != nil {
		return "", http.StatusServiceUnavailable
	}
	return d.visits.begin(key, token, api, now), http.StatusOK
}

func (d *authenticator) show(w http.ResponseWriter, r *http.Request) {
	v, status := d.viewer(r)
	if status != http.StatusOK {
		d.ask(w, r, status, "")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "there is nothing to write here", http.StatusMethodNotAllowed)
		return
	}
	o := Options{API: v.api, Way: d.leader(v.token), Cluster: d.cluster, Narrow: within + "NAMESPACE/ on this page"}
	prefix := ""
	if rest, ok := strings.CutPrefix(r.URL.Path, within); ok {
		namespace, _, slash := strings.Cut(rest, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			http.Error(w, "that is no name of a namespace", http.StatusNotFound)
			return
		}
		o.Namespace, prefix = namespace, within+namespace
		if !slash {
			http.Redirect(w, r, prefix+"/", http.StatusSeeOther)
			return
		}
	}
	http.StripPrefix(prefix, newSheets(o, prefix+"/", v.cache)).ServeHTTP(w, r)
}

// viewer returns the session of a request. The API server re-authorizes it once a minute.
func (d *authenticator) viewer(r *http.Request) (visit, int) {
	key, bearer := "", apiserver.Bearer(r)
	if bearer != "" {
		key = keyOf(bearer)
	} else if c, err := r.Cookie(cookie); err == nil && !strings.Contains(c.Value, " ") {
		key = c.Value
	}
	v, known := d.visits.of(key, time.Now())
	if !known {
		if bearer == "" {
			return visit{}, http.StatusUnauthorized
		}
		if _, status := d.admit(r, key, bearer); status != http.StatusOK {
			return visit{}, status
		}
		if v, known = d.visits.of(key, time.Now()); !known { // evicted by newer sessions
			return visit{}, http.StatusTooManyRequests
		}
		return v, http.StatusOK
	}
	status, _ := d.guests(r.Context(), v.token, netip.Addr{}, time.Now()) // no source address: many viewers may share a proxy
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		d.visits.end(key)
	}
	return v, status
}

func (d *authenticator) ask(w http.ResponseWriter, r *http.Request, status int, why string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if why == "" {
		why = map[int]string{
			http.StatusForbidden:          "The API server knows this token, and its account may not look at this page: it needs the ClusterRole weir-page-viewer, by a ClusterRoleBinding.",
			http.StatusTooManyRequests:    "Too many ask at the same time: try again in a few seconds.",
			http.StatusServiceUnavailable: "The API server could not review this token: try again in a few seconds.",
		}[status]
	}
	if why == "" && status == http.StatusUnauthorized && r.Method == http.MethodPost {
		why = "The API server does not know this token, or it has expired."
	}
	namespace, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, within), "/")
	if !strings.HasPrefix(r.URL.Path, within) {
		namespace = ""
	}
	s := &sheets{Options: Options{Cluster: d.cluster}, root: "/"}
	s.print(w, status, "login", sheet{Title: "Sign in", Brief: why, At: time.Now(), Still: true, Body: struct{ Why, Namespace string }{why, namespace}})
}
