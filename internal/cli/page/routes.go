// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli/explain"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/loadbalancer/plan"
)

type pageServer struct {
	Options

	root  string
	cache *pageCache
}

// limitsTimeout bounds how long the front page waits for the leader.
const limitsTimeout = 2 * time.Second

var staticFiles = map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}

func newPageHandler(o Options, root string, kept *pageCache) http.Handler {
	s := &pageServer{Options: o, root: root, cache: kept}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.serveFront)
	mux.HandleFunc("/pools", s.servePools)
	mux.HandleFunc("/services", s.serveServices)
	mux.HandleFunc("/wrong", s.serveCause)
	mux.HandleFunc("/calls", s.serveCalls)
	mux.HandleFunc("/pool/{namespace}/{name}", s.serveDetails("BackendPool", func(ctx context.Context, r explain.Reader, namespace, name string) (explain.Explanation, error) {
		return r.ExplainPool(ctx, namespace, name)
	}))
	mux.HandleFunc("/service/{namespace}/{name}", s.serveDetails("Service", func(ctx context.Context, r explain.Reader, namespace, name string) (explain.Explanation, error) {
		return r.ExplainService(ctx, namespace, name)
	}))
	mux.HandleFunc("/gateway/{namespace}/{name}", s.serveDetails("Gateway", func(ctx context.Context, r explain.Reader, namespace, name string) (explain.Explanation, error) {
		return r.ExplainGateway(ctx, namespace, name)
	}))
	mux.HandleFunc("/node/{name}", s.serveDetails("Node", func(ctx context.Context, r explain.Reader, _, name string) (explain.Explanation, error) {
		return r.ExplainNode(ctx, name)
	}))
	for name, kind := range staticFiles {
		mux.HandleFunc("/"+name, serveStatic(name, kind))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.serveErrorPage(w, http.StatusNotFound, errorPage{Title: "There is no such page."})
	})
	return mux
}

func serveStatic(name, kind string) http.HandlerFunc {
	body, err := files.ReadFile("static/" + name)
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body) // the client may have disconnected
	}
}

func (s *pageServer) getFrontPage(ctx context.Context) (*frontPage, error) {
	return getCached(ctx, s.cache, s.Namespace+" front", func(ctx context.Context) (*frontPage, error) {
		var usages []plan.LimitUsage
		var limitsErr error
		var reading sync.WaitGroup
		reading.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limitsTimeout)
			defer cancel()
			usages, limitsErr = app.FetchLimits(ctx, s.Connection)
		})
		seen, err := status.ReadSnapshot(ctx, s.API, s.Namespace, time.Now())
		reading.Wait()
		if err != nil {
			return nil, err
		}
		f := newFrontPage(seen)
		f.setLimits(usages, limitsErr)
		return f, nil
	})
}

func (s *pageServer) serveFront(w http.ResponseWriter, r *http.Request) {
	f, err := s.getFrontPage(r.Context())
	if err != nil {
		s.serveError(w, err)
		return
	}
	s.renderPage(w, http.StatusOK, "front", pageData{Title: "Weir", Here: "front", At: f.At, Summary: f.Verdict + " " + f.Running, Body: f})
}

func (s *pageServer) servePools(w http.ResponseWriter, r *http.Request) {
	f, err := s.getFrontPage(r.Context())
	if err != nil {
		s.serveError(w, err)
		return
	}
	c := parseFilter(r.URL.Query())
	list := newListPage(c.filterPools(f.pools), r.URL.Query(), c.filterURL())
	s.renderPage(w, http.StatusOK, "pools", pageData{
		Title: "Pools", Here: "pools", At: f.At, Find: c.Find, Summary: humanize.FormatCount(list.All, "BackendPool"),
		Body: struct {
			Choice poolFilter
			Rows   listPage[poolRow]
		}{c, list},
	})
}

func (s *pageServer) serveCause(w http.ResponseWriter, r *http.Request) {
	f, err := s.getFrontPage(r.Context())
	if err != nil {
		s.serveError(w, err)
		return
	}
	name := r.URL.Query().Get("cause")
	of := slices.Concat(f.Causes, f.Notes)
	i := slices.IndexFunc(of, func(c problemCause) bool { return c.Name == name })
	if i < 0 {
		s.renderPage(w, http.StatusOK, "problem", pageData{Title: name, At: f.At, Body: errorPage{Good: true, Title: "Nothing is wrong for this reason now.", Why: name}})
		return
	}
	s.renderPage(w, http.StatusOK, "wrong", pageData{
		Title: name, At: f.At, Summary: humanize.FormatCount(len(of[i].All), "object"),
		Body: struct {
			Cause problemCause
			Rows  listPage[problemObject]
		}{of[i], newListPage(of[i].All, r.URL.Query(), of[i].Query())},
	})
}

// errorPage is an error page with a suggested fix.
type errorPage struct {
	Title, Why, Fix string
	Good            bool
}

func (s *pageServer) serveError(w http.ResponseWriter, err error) {
	switch {
	case apierrors.IsNotFound(err):
		s.serveErrorPage(w, http.StatusNotFound, errorPage{Title: "It is not there.", Why: err.Error(), Fix: "It may have been deleted: see the list of pools."})
	case apierrors.IsForbidden(err):
		s.serveErrorPage(w, http.StatusForbidden, errorPage{Title: "You may not see this.", Why: err.Error(), Fix: "What you may see of one namespace alone: " + cmp.Or(s.Narrow, "weir page -n NAMESPACE")})
	case apierrors.IsUnauthorized(err):
		s.serveErrorPage(w, http.StatusUnauthorized, errorPage{Title: "The API server does not know you any more.", Why: err.Error(), Fix: "Sign in again."})
	case errors.Is(err, errBusy):
		s.serveErrorPage(w, http.StatusServiceUnavailable, errorPage{Title: "Too much at the same time.", Why: err.Error()})
	default:
		s.serveErrorPage(w, http.StatusBadGateway, errorPage{Title: "The API server cannot be reached.", Why: err.Error(), Fix: "This page retries every few seconds."})
	}
}

func (s *pageServer) serveErrorPage(w http.ResponseWriter, status int, p errorPage) {
	s.renderPage(w, status, "problem", pageData{Title: p.Title, Summary: p.Title, At: time.Now(), Body: p})
}

// renderPage renders a page completely before it writes it.
func (s *pageServer) renderPage(w http.ResponseWriter, status int, name string, of pageData) {
	of.Root, of.Cluster, of.Door = s.root, s.Cluster, s.Narrow != "" && !of.Still
	if s.Namespace != "" {
		of.Cluster += ", namespace " + s.Namespace
	}
	var b bytes.Buffer
	if err := templates[name].ExecuteTemplate(&b, "frame.html", of); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have disconnected
}
