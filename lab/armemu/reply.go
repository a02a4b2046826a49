// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
)

type response struct {
	status          int
	header          http.Header
	body            []byte
	closeConnection bool // close the connection without a response
	maxBytes        int  // body bytes to send; -1 sends all
}

// finishResponse requires the lock.
func (e *Emulator) finishResponse(x *exchange, problem *Problem) *response {
	if problem == nil && x.fault != nil {
		x.answerAppliedWrite()
	}
	if problem != nil {
		problem.OmitDetails = x.route.namespace == compute
		x.status, x.body = problem.Status, problem.toBody()
		problem.setHeaders(x.header)
		x.call.ErrorCode = problem.Code
	}
	x.removeNewProperties()
	r := &response{status: x.status, header: x.header, maxBytes: -1}
	switch {
	case x.raw != nil:
		r.body = x.raw
	case x.body != nil:
		r.body = encodeJSON(x.body)
	}
	if x.req.Method == http.MethodHead {
		r.body = nil
	}
	r.header.Set("Content-Type", "application/json; charset=utf-8")
	r.header.Set("x-ms-request-id", e.newGUID())
	r.header.Set("x-ms-correlation-request-id", e.newGUID())
	if x.fault != nil {
		r.closeConnection = x.fault.Drop
		if x.fault.TruncateBody != nil {
			r.maxBytes = min(*x.fault.TruncateBody, len(r.body))
		}
		for k, v := range x.fault.Headers {
			r.header.Set(k, v)
		}
	}
	x.call.Status, x.call.Dropped = r.status, r.closeConnection
	if r.closeConnection {
		x.call.Status = 0
	}
	e.calls.addCall(x.call)
	e.retryAfters.recordRetryAfter(x, r, x.now)
	return r
}

// ServeHTTP serves requests as Azure Resource Manager would. It never serves /_emu/.
func (e *Emulator) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, err := e.handle(req)
	if err != nil || r.closeConnection {
		// net/http does not log this value.
		panic(http.ErrAbortHandler)
	}
	for k, v := range r.header {
		w.Header()[k] = v
	}
	if r.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	}
	w.WriteHeader(r.status)
	if r.maxBytes >= 0 {
		_, _ = w.Write(r.body[:r.maxBytes])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(r.body) // the client may have disconnected
}

// Transport implements azcore's policy.Transporter in memory.
type Transport struct{ emulator *Emulator }

// Transport needs no sockets or goroutines.
func (e *Emulator) Transport() *Transport { return &Transport{emulator: e} }

// Do returns an error that wraps syscall.ECONNRESET for a dropped connection.
func (t *Transport) Do(req *http.Request) (*http.Response, error) {
	if err := context.Cause(req.Context()); err != nil {
		return nil, err
	}
	r, err := t.emulator.handle(req)
	if err != nil {
		return nil, err
	}
	if r.closeConnection {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	resp := &http.Response{
		StatusCode: r.status, Status: strconv.Itoa(r.status) + " " + http.StatusText(r.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header, ContentLength: int64(len(r.body)), Request: req,
		Body: io.NopCloser(bytes.NewReader(r.body)),
	}
	if r.maxBytes >= 0 {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(r.body[:r.maxBytes]), brokenReader{}))
	}
	return resp, nil
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) { return t.Do(req) }

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
