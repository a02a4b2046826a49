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

// maxBody is ARM's limit on a request body, in bytes.
const maxBody = 4 << 20

// exchange is one request passing through the stages.
type exchange struct {
	req     *http.Request
	now     time.Time
	route   route
	payload []byte
	object  func() (fields, error) // decodes the payload once
	caller  string                 // digest of the bearer token
	fault   *firedFault
	call    Call

	// Response.
	status int
	header http.Header
	body   any
	raw    []byte // if not nil, sent instead of body
	done   bool   // skip the remaining stages
}

// stage may end the exchange by returning a problem or by setting done.
type stage struct {
	name string
	run  func(*Emulator, *exchange) *Problem
}

// The stages in order. The inner stages hold the emulator's lock, so a precondition check and its
// write are atomic. The outer ones do not, because a fault may delay.
var (
	outerStages = []stage{
		{"auth", (*Emulator).authenticate},
		{"patience", (*Emulator).awaited},
		{"permissions", (*Emulator).permissions},
		{"role", (*Emulator).authorize},
		{"api-version", (*Emulator).checkVersion},
		{"schema", (*Emulator).checkSchema},
		{"fault script", (*Emulator).applyFault},
	}
	innerStages = []stage{
		{"ARM buckets", (*Emulator).takeToken},
		{"network window", (*Emulator).takeWindow},
		{"compute quotas", (*Emulator).countCompute},
		{"route", (*Emulator).find},
		{"precondition", (*Emulator).precondition},
		{"validation and commit", (*Emulator).write},
	}
)

// answer runs the stages. An error means that the request's context is done; nothing is sent then.
func (e *Emulator) answer(req *http.Request) (*reply, error) {
	x := &exchange{req: req, header: http.Header{}, route: parseRoute(req.Method, req.URL)}
	payload, err := readPayload(req)
	if err != nil {
		return nil, err
	}
	x.payload = payload
	x.object = sync.OnceValues(func() (fields, error) { return parseBody(payload) })
	problem := runStages(e, x, outerStages)
	if err := context.Cause(req.Context()); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	x.now = time.Now()
	e.settle(x.now)
	x.before(e)
	if problem == nil && !x.done {
		problem = runStages(e, x, innerStages)
	}
	return e.finish(x, problem), nil
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
	x.caller = Caller(token)
	if e.opts.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(e.opts.Token)) != 1 {
		return &Problem{
			Status: http.StatusUnauthorized, Code: "InvalidAuthenticationToken", Gateway: true,
			Message: "The access token is invalid: it is not the one this emulator was started with.",
		}
	}
	return nil
}

// apiVersions are api-versions of Microsoft.Network with the same behavior.
var apiVersions = []string{
	"2020-11-01", "2021-02-01", "2021-03-01", "2021-05-01", "2021-08-01", "2022-01-01", "2022-05-01",
	"2022-07-01", "2022-09-01", "2022-11-01", "2023-02-01", "2023-04-01", "2023-05-01", "2023-06-01",
	"2023-09-01", "2023-11-01", "2024-01-01", "2024-03-01", "2024-05-01", "2024-07-01", "2024-10-01",
	"2025-01-01", "2025-03-01", "2025-05-01", "2025-07-01", "2025-09-01",
}

// computeVersions are the same for Microsoft.Compute.
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
	case resources:
		namespace, known = resources, resourcesVersions
	}
	version := x.req.URL.Query().Get("api-version")
	if version == "" {
		return bad("MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests.")
	}
	if !slices.Contains(known, version) {
		return bad("NoRegisteredProviderFound", fmt.Sprintf(
			"No registered resource provider found for API version %q in the namespace %q. The supported api-versions are '%s'.",
			version, namespace, strings.Join(known, ", ")))
	}
	return nil
}

// find handles unknown paths, reads, polls, and writes below a missing parent.
func (e *Emulator) find(x *exchange) *Problem {
	r := x.route
	if r.problem != nil {
		return r.problem
	}
	if r.about != aResource {
		return e.answerGroup(x)
	}
	if r.location != "" {
		return e.usages(x)
	}
	if problem := e.refuseGroup(r); problem != nil {
		return problem
	}
	if r.interfaces && r.problem == nil {
		x.done = true
		return e.readInterfaces(x)
	}
	switch r.kind {
	case KindPoll:
		x.done = true
		return e.poll(x)
	case KindList:
		x.done = true
		return e.list(x)
	case KindGet:
		x.done = true
		return e.get(x)
	case KindPatch, KindAction:
		if parent, below := r.id.above(); below && e.aggregates[parent.key()] == nil {
			return missing(parent)
		}
		if e.aggregates[r.id.rootKey()] == nil {
			return missing(r.id)
		}
	case KindPut, KindDelete:
		if parent, below := r.id.above(); below && e.aggregates[parent.key()] == nil {
			return missingParent(r.kind, parent)
		}
	}
	return nil
}

// missingParent rejects a write of a child without its parent.
func missingParent(kind Kind, parent resourceID) *Problem {
	if kind == KindDelete {
		return missing(parent)
	}
	return notFound("ParentResourceNotFound", fmt.Sprintf(
		"Can not perform requested operation on nested resource. Parent resource '%s' not found.", parent.name))
}

// write validates and commits a PUT or DELETE, or changes tags.
func (e *Emulator) write(x *exchange) *Problem {
	if len(x.payload) > maxBody {
		return &Problem{
			Status: http.StatusRequestEntityTooLarge, Code: "RequestContentTooLarge", Gateway: true,
			Message: fmt.Sprintf("The request content size exceeds the maximum size of %d bytes.", maxBody),
		}
	}
	switch {
	case x.route.kind == KindAction:
		return e.act(x)
	case x.route.kind == KindPatch && x.route.namespace == network:
		return e.patch(x)
	}
	p, problem := e.propose(x)
	if problem == nil {
		problem = validate(p)
	}
	if problem == nil {
		problem = e.refuseOlder(x, p)
	}
	if problem == nil {
		problem = e.refuseUnprovisioned(p)
	}
	if problem == nil {
		problem = e.refuseBusyMachine(p)
	}
	if problem == nil {
		problem = e.commit(x, p)
	}
	return problem
}
