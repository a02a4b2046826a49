// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"weir.dev/weir/internal/app/explain"
	"weir.dev/weir/internal/app/status"
	"weir.dev/weir/internal/words"
)

type sheets struct {
	Options

	root  string
	cache *cache
}

var statics = map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}

func newSheets(o Options, root string, kept *cache) http.Handler {
	s := &sheets{Options: o, root: root, cache: kept}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.front)
	mux.HandleFunc("/pools", s.pools)
	mux.HandleFunc("/wrong", s.wrong)
	mux.HandleFunc("/calls", s.calls)
	mux.HandleFunc("/pool/{namespace}/{name}", s.tell("BackendPool", func(ctx context.Context, r explain.Reader, namespace, name string) (explain.Story, error) {
		return r.OfPool(ctx, namespace, name)
	}))
	mux.HandleFunc("/service/{namespace}/{name}", s.tell("Service", func(ctx context.Context, r explain.Reader, namespace, name string) (explain.Story, error) {
		return r.OfService(ctx, namespace, name)
	}))
	mux.HandleFunc("/node/{name}", s.tell("Node", func(ctx context.Context, r explain.Reader, _, name string) (explain.Story, error) {
		return r.OfNode(ctx, name)
	}))
	for name, kind := range statics {
		mux.HandleFunc("/"+name, static(name, kind))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.problem(w, http.StatusNotFound, problem{Is: "There is no such page."})
	})
	return mux
}

func static(name, kind string) http.HandlerFunc {
	body, err := files.ReadFile("static/" + name)
	if err != nil {
		panic(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body) // the client may have disconnected
	}
}

func (s *sheets) look(ctx context.Context) (*front, error) {
	return take(ctx, s.cache, s.Namespace+" front", func(ctx context.Context) (*front, error) {
		seen, err := status.Read(ctx, s.API, s.Namespace, time.Now())
		if err != nil {
			return nil, err
		}
		return frontOf(seen), nil
	})
}

func (s *sheets) front(w http.ResponseWriter, r *http.Request) {
	f, err := s.look(r.Context())
	if err != nil {
		s.failed(w, err)
		return
	}
	s.print(w, http.StatusOK, "front", sheet{Title: "Weir", Here: "front", At: f.At, Brief: f.Verdict, Body: f})
}

func (s *sheets) pools(w http.ResponseWriter, r *http.Request) {
	f, err := s.look(r.Context())
	if err != nil {
		s.failed(w, err)
		return
	}
	c := choiceOf(r.URL.Query())
	list := rowsOf(c.choose(f.pools), r.URL.Query(), c.link())
	s.print(w, http.StatusOK, "pools", sheet{
		Title: "Pools", Here: "pools", At: f.At, Find: c.Find, Brief: words.Count(list.All, "BackendPool"),
		Body: struct {
			Choice choice
			Rows   rows[pool]
		}{c, list},
	})
}

func (s *sheets) wrong(w http.ResponseWriter, r *http.Request) {
	f, err := s.look(r.Context())
	if err != nil {
		s.failed(w, err)
		return
	}
	name := r.URL.Query().Get("cause")
	of := slices.Concat(f.Causes, f.Notes)
	i := slices.IndexFunc(of, func(c cause) bool { return c.Name == name })
	if i < 0 {
		s.print(w, http.StatusOK, "problem", sheet{Title: name, At: f.At, Body: problem{Good: true, Is: "Nothing is wrong for this reason now.", Why: name}})
		return
	}
	s.print(w, http.StatusOK, "wrong", sheet{
		Title: name, At: f.At, Brief: words.Count(len(of[i].All), "object"),
		Body: struct {
			Cause cause
			Rows  rows[object]
		}{of[i], rowsOf(of[i].All, r.URL.Query(), of[i].Query())},
	})
}

// problem is an error page with a suggested fix.
type problem struct {
	Is, Why, Do string
	Good        bool
}

func (s *sheets) failed(w http.ResponseWriter, err error) {
	switch {
	case apierrors.IsNotFound(err):
		s.problem(w, http.StatusNotFound, problem{Is: "It is not there.", Why: err.Error(), Do: "Perhaps it was deleted: look for it among the pools."})
	case apierrors.IsForbidden(err):
		s.problem(w, http.StatusForbidden, problem{Is: "You may not see this.", Why: err.Error(), Do: "What you may see of one namespace alone: " + cmp.Or(s.Narrow, "weir page -n NAMESPACE")})
	case apierrors.IsUnauthorized(err):
		s.problem(w, http.StatusUnauthorized, problem{Is: "The API server does not know you any more.", Why: err.Error(), Do: "Sign in again."})
	case errors.Is(err, errBusy):
		s.problem(w, http.StatusServiceUnavailable, problem{Is: "Too much at the same time.", Why: err.Error()})
	default:
		s.problem(w, http.StatusBadGateway, problem{Is: "The API server cannot be reached.", Why: err.Error(), Do: "This page retries every few seconds."})
	}
}

func (s *sheets) problem(w http.ResponseWriter, status int, p problem) {
	s.print(w, status, "problem", sheet{Title: p.Is, Brief: p.Is, At: time.Now(), Body: p})
}

// print renders a page completely before it writes it.
func (s *sheets) print(w http.ResponseWriter, status int, name string, of sheet) {
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
