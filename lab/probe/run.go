// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/ratelimit"
)

// Probe is one run: it creates a resource group, measures, and deletes the group.
type Probe struct {
	Azure Azure
	Settings
	// Log reports progress, one line per call.
	Log func(text string)
}

// OrphanError reports a resource group that may still exist.
type OrphanError struct {
	Group string
	// Uncertain is set if the group does not exist, but may still appear, empty.
	Uncertain bool
	Err       error
}

// Error names the group and the error.
func (e *OrphanError) Error() string {
	if e.Uncertain {
		return fmt.Sprintf("resource group %s may come to be there yet: %v", e.Group, e.Err)
	}
	return fmt.Sprintf("resource group %s could not be deleted: %v", e.Group, e.Err)
}

// Unwrap returns Err.
func (e *OrphanError) Unwrap() error { return e.Err }

// deleteTimeout does not depend on the run's context.
const deleteTimeout = 30 * time.Minute

// run is a probe in progress.
type run struct {
	Probe
	place
	tags      Object
	startTime time.Time
	// groupCreated is set once the group may exist; the other flag, if that is unknown.
	groupCreated, groupUncertain bool
	calls                        atomic.Int64
	results                      map[string]*behavior.PropertyResult
	samples                      []sample
	freeIPs                      int
	// cached caches the load balancer with the IP pool until the next write.
	cached Object
	first  placedResult
}

// Run always cleans up, even if ctx is done. Open questions are no error. The error may wrap a
// *OrphanError.
func (p Probe) Run(ctx context.Context) (behavior.Report, error) {
	now := time.Now()
	r := &run{
		Probe: p, place: place{p.Subscription, p.GroupName()}, tags: p.newTags(now), startTime: now,
		results: map[string]*behavior.PropertyResult{},
	}
	for _, q := range behavior.AllProperties() {
		r.results[q.Name] = &behavior.PropertyResult{Name: q.Name, Description: q.Description, Assumed: q.Results[0]}
	}
	err := r.createAll(ctx)
	if err == nil {
		err = r.runSteps(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	if remaining := r.cleanUp(ctx); remaining != nil {
		err = errors.Join(err, remaining)
	}
	return r.newReport(), p.redactError(err)
}

func (r *run) cleanUp(ctx context.Context) error {
	if !r.groupCreated {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	if r.groupUncertain {
		r.Log(fmt.Sprintf("it is unknown whether the write of resource group %s arrived: checking for %s", r.group, createTimeout))
		ok, err := waitForGroup(after, r.Azure, r.place)
		switch {
		case err != nil:
			return &OrphanError{Group: r.group, Err: err}
		case !ok:
			return &OrphanError{Group: r.group, Uncertain: true, Err: fmt.Errorf("its write had no conclusive response, and it does not exist %s later", createTimeout)}
		}
	}
	r.Log("deleting resource group " + r.group + ", which takes some minutes")
	if err := removeGroup(after, r.Azure, r.place); err != nil {
		return &OrphanError{Group: r.group, Err: err}
	}
	r.Log("deleted")
	return nil
}

func (p Probe) redactError(err error) error {
	if err == nil {
		return nil
	}
	return &redactedError{Redact(err.Error(), p.allSecrets()...), err}
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

func (p Probe) allSecrets() []string { return append(slices.Clone(p.Secrets), p.Subscription) }

func (r *run) sendRequest(ctx context.Context, q Request) (Response, error) {
	if q.Method != methodGet {
		r.cached = nil
	}
	return sendWithRetry(ctx, countingClient{r}, q)
}

// countingClient counts requests.
type countingClient struct{ *run }

// Send implements Azure.
func (c countingClient) Send(ctx context.Context, q Request) (Response, error) {
	c.calls.Add(1)
	a, err := c.Azure.Send(ctx, q)
	if err == nil && isBusy(a) {
		c.Log("  " + formatResponse(a) + ": Azure is busy, waiting")
	}
	return a, err
}

// Follow implements Azure.
func (c countingClient) Follow(ctx context.Context, a Response) (Result, error) {
	return c.Azure.Follow(ctx, a)
}

func apiVersion(id string) string {
	switch {
	case strings.Contains(id, "/Microsoft.Network/"):
		return networkVersion
	case strings.Contains(id, "/Microsoft.Compute/"):
		return computeVersion
	}
	return groupVersion
}

func (r *run) readResource(ctx context.Context, id string) (Object, error) {
	a, err := r.sendRequest(ctx, Request{Method: methodGet, Path: id, Version: apiVersion(id)})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path.Base(id), err)
	}
	if !a.IsAccepted() {
		return nil, fmt.Errorf("read %s: %s: %s", path.Base(id), formatResponse(a), a.Message)
	}
	return a.Body, nil
}

type writeResult struct {
	Response
	Result
}

func (w writeResult) isSucceeded() bool { return w.IsAccepted() && w.State == succeeded }

func (w writeResult) String() string {
	if w.IsAccepted() {
		return strings.TrimSpace(fmt.Sprintf("%d, then %s %s", w.Status, w.State, strings.Join(w.Result.Codes, " ")))
	}
	return formatResponse(w.Response)
}

func newWrite(id string, body Object) Request {
	return Request{Method: methodPut, Path: id, Version: apiVersion(id), Body: body}
}

// writeAndWait waits for the end. kind is the latency to record; may be empty.
func (r *run) writeAndWait(ctx context.Context, kind string, q Request) (writeResult, error) {
	a, err := r.sendRequest(ctx, q)
	if err != nil {
		return writeResult{}, fmt.Errorf("write %s: %w", path.Base(q.Path), err)
	}
	w := writeResult{Response: a}
	if !a.IsAccepted() {
		return w, nil
	}
	var seen Result
	if kind != "" {
		seen = r.watchWrite(ctx, q.Path, a)
	}
	if w.Result, err = r.Azure.Follow(ctx, a); err != nil {
		return w, fmt.Errorf("write %s: its end is not known: %w", path.Base(q.Path), err)
	}
	if kind != "" && w.isSucceeded() {
		if seen.FinishedAt.IsZero() {
			seen = w.Result
		}
		r.samples = append(r.samples, sample{kind, writeSpan(a, seen), seen.FinishedAt.Equal(a.At)})
	}
	return w, nil
}

// watchInterval is the resolution of latencies. Operations ask for polls every 10 s; the resource
// itself may be read more often.
const watchInterval = 2 * time.Second

// watchWrite returns when the write finished; zero if unknown.
func (r *run) watchWrite(ctx context.Context, id string, a Response) Result {
	seen, latest := Result{FinishedAt: a.At}, a
	for {
		switch {
		case !latest.IsAccepted():
			return Result{}
		case stringValue(propertiesOf(latest.Body), "provisioningState") != updating:
			return seen
		}
		seen.RunningAt = latest.At
		err := ratelimit.Sleep(ctx, watchInterval)
		if err == nil {
			latest, err = r.Azure.Send(ctx, Request{Method: methodGet, Path: id, Version: apiVersion(id)})
		}
		if err != nil {
			return Result{}
		}
		seen.FinishedAt = latest.At
	}
}

func (r *run) recordEvent(did string, w writeResult, saw string, questions ...string) {
	s := behavior.Event{Action: did, Status: w.Status, Codes: slices.Concat(w.Response.Codes, w.Result.Codes), State: w.State, Details: saw}
	for _, q := range questions {
		r.results[q].Events = append(r.results[q].Events, s)
	}
}

func (r *run) recordResult(question string, a behavior.Result, reason string) {
	f := r.results[question]
	f.Result, f.Reason = a, reason
	if a == "" {
		r.Log("  " + question + " remains open: " + Redact(reason, r.allSecrets()...))
		return
	}
	r.Log(fmt.Sprintf("  %s: %s", question, a))
}

// newMember returns an address that no pool had before.
func (r *run) newMember() member {
	r.freeIPs++
	return member{name: fmt.Sprintf("spare-%d", r.freeIPs), ip: freeIP(r.freeIPs), state: none}
}

func servingMember(state string) member { return member{"machine", servingIP, state} }
