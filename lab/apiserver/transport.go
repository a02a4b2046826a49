// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

type clientTransport struct {
	s      *Server
	client string
}

// Transport returns an in-memory transport that serves requests in the caller's goroutine.
func (s *Server) Transport(client string) http.RoundTripper { return &clientTransport{s, client} }

// RoundTrip implements http.RoundTripper.
func (t *clientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	r, wrong := t.s.parseRequest(t.client, req)
	r.body = body
	if err := t.s.applyFaults(req.Context(), r); err != nil {
		return t.errorResponse(req, r, err)
	}
	if wrong != nil {
		return t.errorResponse(req, r, wrong)
	}
	if r.verb == verbWatch {
		w, err := t.s.startWatch(req.Context(), r)
		if err != nil {
			return t.errorResponse(req, r, err)
		}
		t.s.recordRequest(r, http.StatusOK, nil)
		return newResponse(req, http.StatusOK, w.info.MediaType+w.params, w), nil
	}
	info, o, status, err := t.s.serveRequest(r)
	if err != nil {
		return t.errorResponse(req, r, err)
	}
	var out bytes.Buffer
	if err := info.Serializer.Encode(o, &out); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", o, err)
	}
	if t.s.dropsResponse(r) {
		t.s.recordRequest(r, 0, errReset)
		return nil, errReset
	}
	t.s.recordRequest(r, status, nil)
	return newResponse(req, status, info.MediaType, io.NopCloser(&out)), nil
}

// readBody also closes the request body, as transports must.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	return body, errors.Join(err, req.Body.Close())
}

// errorResponse returns an error response, or only the error for a lost connection.
func (t *clientTransport) errorResponse(req *http.Request, r *request, err error) (*http.Response, error) {
	if errors.Is(err, errNoPath) {
		t.s.recordRequest(r, http.StatusNotFound, err)
		return newResponse(req, http.StatusNotFound, "text/plain; charset=utf-8", io.NopCloser(strings.NewReader("404 page not found\n"))), nil
	}
	statusErr, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		t.s.recordRequest(r, 0, err)
		return nil, err
	}
	status := statusErr.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	code := int(status.Code)
	t.s.recordRequest(r, code, err)
	var out bytes.Buffer
	if err := inJSON.Serializer.Encode(&status, &out); err != nil {
		return nil, fmt.Errorf("encoding a status: %w", err)
	}
	res := newResponse(req, code, runtime.ContentTypeJSON, io.NopCloser(&out))
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		res.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return res, nil
}

func newResponse(req *http.Request, code int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}, "Cache-Control": {"no-cache, private"}},
		Body:   body, ContentLength: -1, Request: req,
	}
}

func (s *Server) serveRequest(r *request) (runtime.SerializerInfo, runtime.Object, int, error) {
	if r.verb == verbDiscover {
		o, err := s.serveDiscovery(strings.Trim(r.path, "/"))
		return inJSON, o, http.StatusOK, err
	}
	info, metadataOnly := negotiateFormat(r.header, r.kind)
	s.mu.Lock()
	o, status, err := s.dispatch(r)
	s.mu.Unlock()
	if err != nil {
		return info, nil, 0, err
	}
	if metadataOnly {
		o = toMetadataOnly(o)
	}
	return info, o, status, nil
}

// dispatch requires the lock.
func (s *Server) dispatch(r *request) (o runtime.Object, status int, err error) {
	switch r.verb {
	case verbGet:
		o, err = s.getObject(r)
	case verbList:
		return s.listObjects(r)
	case verbCreate:
		var body object
		if body, err = decodeObject(r.kind, r.header.Get("Content-Type"), r.body); err == nil {
			o, err = s.createObject(r, body)
		}
		return o, http.StatusCreated, err
	case verbUpdate:
		return s.updateObject(r)
	case verbPatch:
		o, err = s.patchObject(r)
	case verbApply:
		return s.applyObject(r)
	case verbDelete:
		return s.removeObject(r)
	}
	return o, http.StatusOK, err
}
