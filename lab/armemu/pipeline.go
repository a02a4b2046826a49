// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody is ARM's limit, in bytes.
const maxBody = 4 << 20

type exchange struct {
	req          *http.Request
	now          time.Time
	route        route
	payload      []byte
	decodeObject func() (fields, error) // decodes the payload once
	callerID     string                 // digest of the bearer token
	fault        *activeFault
	call         Call

	// Response.
	status int
	header http.Header
	body   any
	raw    []byte // if not nil, sent instead of body
	done   bool   // skip the remaining stages
}

type stage struct {
	name string
	run  func(*Emulator, *exchange) *Problem
}

// The inner stages hold the lock, so a precondition check and its write are atomic. A fault may
// delay, so the outer ones do not.
var (
	outerStages = []stage{
		{"auth", (*Emulator).authenticate},
		{"patience", (*Emulator).enforceRetryAfter},
		{"permissions", (*Emulator).servePermissions},
		{"role", (*Emulator).authorize},
		{"api-version", (*Emulator).checkVersion},
		{"schema", (*Emulator).checkSchema},
		{"fault script", (*Emulator).applyFault},
	}
	innerStages = []stage{
		{"ARM buckets", (*Emulator).takeToken},
		{"network window", (*Emulator).takeWindow},
		{"compute quotas", (*Emulator).countCompute},
		{"route", (*Emulator).routeRequest},
		{"precondition", (*Emulator).checkPreconditions},
		{"validation and commit", (*Emulator).handleWrite},
	}
)

// handle fails only if the request's context is done.
func (e *Emulator) handle(req *http.Request) (*response, error) {
	x := &exchange{req: req, header: http.Header{}, route: parseRoute(req.Method, req.URL)}
	payload, err := readPayload(req)
	if err != nil {
		return nil, err
	}
	x.payload = payload
	x.decodeObject = sync.OnceValues(func() (fields, error) { return parseBody(payload) })
	problem := runStages(e, x, outerStages)
	if err := context.Cause(req.Context()); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	x.now = time.Now()
	e.finishDue(x.now)
	x.recordRequest(e)
	if req.Method != http.MethodGet {
		e.revision++
	}
	if problem == nil && !x.done {
		problem = runStages(e, x, innerStages)
	}
	return e.finishResponse(x, problem), nil
}

func runStages(e *Emulator, x *exchange, stages []stage) *Problem {
	for _, s := range stages {
		if problem := s.run(e, x); problem != nil || x.done {
			return problem
		}
	}
	return nil
}

func readPayload(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	payload, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	closeErr := req.Body.Close()
	if err = errors.Join(err, closeErr); err != nil {
		return nil, fmt.Errorf("reading the request body: %w", err)
	}
	return payload, nil
}

func (e *Emulator) authenticate(x *exchange) *Problem {
	header := x.req.Header.Get("Authorization")
	scheme, token, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return &Problem{
			Status: http.StatusUnauthorized, Code: "AuthenticationFailed", Gateway: true,
			Message: "Authentication failed. The 'Authorization' header is missing or does not carry a bearer token.",
		}
	}
	// The token itself is neither stored nor logged.
	x.callerID = CallerID(token)
	if e.opts.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(e.opts.Token)) != 1 {
		return &Problem{
			Status: http.StatusUnauthorized, Code: "InvalidAuthenticationToken", Gateway: true,
			Message: "The access token is invalid: it is not the one this emulator was started with.",
		}
	}
	return nil
}

// apiVersions all have the same behavior.
var apiVersions = []string{
	"2020-11-01", "2021-02-01", "2021-03-01", "2021-05-01", "2021-08-01", "2022-01-01", "2022-05-01",
	"2022-07-01", "2022-09-01", "2022-11-01", "2023-02-01", "2023-04-01", "2023-05-01", "2023-06-01",
	"2023-09-01", "2023-11-01", "2024-01-01", "2024-03-01", "2024-05-01", "2024-07-01", "2024-10-01",
	"2025-01-01", "2025-03-01", "2025-05-01", "2025-07-01", "2025-09-01",
}

var computeVersions = []string{
	"2022-03-01", "2022-08-01", "2022-11-01", "2023-03-01", "2023-07-01", "2023-09-01",
	"2024-03-01", "2024-07-01", "2024-11-01", "2025-04-01", "2026-04-01",
}

func (e *Emulator) checkVersion(x *exchange) *Problem {
	namespace, known := network, apiVersions
	switch x.route.namespace {
	case compute:
		namespace, known = compute, computeVersions
		if x.route.interfaces {
			known = append([]string{interfacesVersion}, apiVersions...)
		}
	case resourcesNamespace:
		namespace, known = resourcesNamespace, resourcesVersions
	}
	version := x.req.URL.Query().Get("api-version")
	if version == "" {
		return badRequest("MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
	}
	if !slices.Contains(known, version) {
		return badRequest("NoRegisteredProviderFound", fmt.Sprintf(
			"No registered resource provider found for API version %q in the namespace %q. The supported api-versions are '%s'.",
			version, namespace, strings.Join(known, ", ")))
	}
	return nil
}

func (e *Emulator) routeRequest(x *exchange) *Problem {
	r := x.route
	if r.problem != nil {
		return r.problem
	}
	if r.target != targetResource {
		return e.serveGroup(x)
	}
	if r.location != "" {
		return e.serveUsages(x)
	}
	if problem := e.checkGroup(r); problem != nil {
		return problem
	}
	if r.interfaces && r.problem == nil {
		x.done = true
		return e.readInterfaces(x)
	}
	switch r.kind {
	case KindPoll:
		x.done = true
		return e.pollOperation(x)
	case KindList:
		x.done = true
		return e.listResources(x)
	case KindGet:
		x.done = true
		return e.getResource(x)
	case KindPatch, KindAction:
		if parent, below := r.id.parentID(); below && e.aggregates[parent.key()] == nil {
			return resourceNotFound(parent)
		}
		if e.aggregates[r.id.rootKey()] == nil {
			return resourceNotFound(r.id)
		}
	case KindPut, KindDelete:
		if parent, below := r.id.parentID(); below && e.aggregates[parent.key()] == nil {
			return parentNotFound(r.kind, parent)
		}
	}
	return nil
}

func parentNotFound(kind Kind, parent resourceID) *Problem {
	if kind == KindDelete {
		return resourceNotFound(parent)
	}
	return notFound("ParentResourceNotFound", fmt.Sprintf(
		"Can not perform requested operation on nested resource. Parent resource '%s' not found.", parent.name))
}

func (e *Emulator) handleWrite(x *exchange) *Problem {
	if len(x.payload) > maxBody {
		return &Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "RequestContentTooLarge", Gateway: true,
			Message: fmt.Sprintf("The request content size exceeds the maximum size of %d bytes.", maxBody),
		}
	}
	switch {
	case x.route.kind == KindAction:
		return e.acceptAction(x)
	case x.route.kind == KindPatch && x.route.namespace == network:
		return e.patchTags(x)
	}
	p, problem := e.proposeWrite(x)
	if problem == nil {
		problem = validate(p)
	}
	if problem == nil {
		problem = e.rejectOlderVersion(x, p)
	}
	if problem == nil {
		problem = e.rejectUnprovisioned(p)
	}
	if problem == nil {
		problem = e.rejectBusyMachine(p)
	}
	if problem == nil {
		problem = e.commitWrite(x, p)
	}
	return problem
}
