// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	verbGet      = "get"
	verbList     = "list"
	verbWatch    = "watch"
	verbCreate   = "create"
	verbUpdate   = "update"
	verbPatch    = "patch"
	verbApply    = "apply"
	verbDelete   = "delete"
	verbDiscover = "discover"
)

type request struct {
	client, verb    string
	kind            *resourceKind
	namespace, name string
	subresource     string
	path            string
	query           url.Values
	header          http.Header
	body            []byte
}

func (r *request) resourceName() string {
	switch {
	case r.kind == nil:
		return r.path
	case r.subresource != "":
		return r.kind.resource + "/" + r.subresource
	}
	return r.kind.resource
}

func (r *request) dryRun() bool { return r.query.Get("dryRun") == metav1.DryRunAll }

func (r *request) fieldManager() string {
	if m := r.query.Get("fieldManager"); m != "" {
		return m
	}
	agent, _, _ := strings.Cut(r.header.Get("User-Agent"), "/")
	if agent == "" {
		return "unknown"
	}
	return agent
}

func (s *Server) parseRequest(client string, req *http.Request) (*request, error) {
	r := &request{client: client, path: req.URL.Path, query: req.URL.Query(), header: req.Header, verb: verbDiscover}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	gv := ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		gv, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		gv, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return r, nil
	}
	// namespaces/x is an object, namespaces/x/services a namespaced resource.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" {
		r.namespace, parts = parts[1], parts[2:]
	}
	s.mu.Lock()
	r.kind = s.kinds[gv][parts[0]]
	s.mu.Unlock()
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]
	}
	if r.verb = requestVerb(req.Method, r); r.verb == "" {
		return r, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: parts[0]}, strings.ToLower(req.Method))
	}
	if !r.isServed() {
		return r, errNoPath
	}
	return r, nil
}

func (r *request) isServed() bool {
	switch {
	case r.kind == nil || r.subresource != "" && (r.subresource != "status" || !r.kind.status):
		return false
	case !r.kind.namespaced:
		return r.namespace == ""
	}
	return r.namespace != "" || r.verb == verbList || r.verb == verbWatch
}

func requestVerb(method string, r *request) string {
	switch method {
	case http.MethodGet:
		switch {
		case r.name != "":
			return verbGet
		case r.query.Get("watch") == "true" || r.query.Get("watch") == "1":
			return verbWatch
		}
		return verbList
	case http.MethodPost:
		if r.name == "" {
			return verbCreate
		}
	case http.MethodPut:
		if r.name != "" {
			return verbUpdate
		}
	case http.MethodPatch:
		if r.name != "" {
			if strings.HasPrefix(r.header.Get("Content-Type"), applyPatchType) {
				return verbApply
			}
			return verbPatch
		}
	case http.MethodDelete:
		if r.name != "" {
			return verbDelete
		}
	}
	return ""
}

// errNoPath is returned as plain text.
var errNoPath = errors.New("no such path")
