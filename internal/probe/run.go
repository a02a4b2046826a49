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

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/sleep"
)

// Probe is one run: it creates a resource group, measures, and deletes the group.
type Probe struct {
	Azure Azure
	Settings
	// Say reports progress, one line per call.
	Say func(text string)
}

// LeftBehind reports a resource group that may still exist.
type LeftBehind struct {
	Group string
	// Unseen is set if the group does not exist, but may still appear, empty.
	Unseen bool
	Err    error
}

// Error names the group and the error.
func (e *LeftBehind) Error() string {
	if e.Unseen {
		return fmt.Sprintf("resource group %s may come to be there yet: %v", e.Group, e.Err)
	}
	return fmt.Sprintf("resource group %s could not be deleted: %v", e.Group, e.Err)
}

// Unwrap returns Err.
func (e *LeftBehind) Unwrap() error { return e.Err }

// toDelete does not depend on the run's context.
const toDelete = 30 * time.Minute

// run is a probe in progress.
type run struct {
	Probe
	place
	tags  Object
	began time.Time
	// made is set once the group may exist; the other flag, if that is unknown.
	made, unanswered bool
	calls            atomic.Int64
	findings         map[string]*Finding
	samples          []sample
	spares           int
	// shown caches the load balancer with the IP pool until the next write.
	shown Object
	first look
}

// Run always cleans up, even if ctx is done. Open questions are no error. The error may wrap a
// *LeftBehind.
func (p Probe) Run(ctx context.Context) (Report, error) {
	now := time.Now()
	r := &run{
		Probe: p, place: place{p.Subscription, p.Name()}, tags: p.tags(now), began: now,
		findings: map[string]*Finding{},
	}
	for _, q := range behaviour.Questions() {
		r.findings[q.Name] = &Finding{Name: q.Name, Asks: q.Asks, Assumed: q.Answers[0]}
	}
	err := r.build(ctx)
	if err == nil {
		err = r.ask(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	if left := r.cleanUp(ctx); left != nil {
		err = errors.Join(err, left)
	}
	return r.report(), p.redacted(err)
}

func (r *run) cleanUp(ctx context.Context) error {
	if !r.made {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), toDelete)
	defer cancel()
	if r.unanswered {
		r.Say(fmt.Sprintf("nothing tells whether the write of resource group %s arrived: looking for it for %s", r.group, arrivesWithin))
		there, err := appears(after, r.Azure, r.place)
		switch {
		case err != nil:
			return &LeftBehind{Group: r.group, Err: err}
		case !there:
			return &LeftBehind{Group: r.group, Unseen: true, Err: fmt.Errorf("its write had no answer that tells, and %s later it is not there", arrivesWithin)}
		}
	}
	r.Say("deleting resource group " + r.group + ", which takes some minutes")
	if err := remove(after, r.Azure, r.place); err != nil {
		return &LeftBehind{Group: r.group, Err: err}
	}
	r.Say("deleted")
	return nil
}

func (p Probe) redacted(err error) error {
	if err == nil {
		return nil
	}
	return &told{Redact(err.Error(), p.secrets()...), err}
}

type told struct {
	text string
	err  error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.err }

func (p Probe) secrets() []string { return append(slices.Clone(p.Secrets), p.Subscription) }

func (r *run) send(ctx context.Context, q Request) (Answer, error) {
	if q.Method != methodGet {
		r.shown = nil
	}
	return patiently(ctx, counting{r}, q)
}

// counting counts requests.
type counting struct{ *run }

// Send implements Azure.
func (c counting) Send(ctx context.Context, q Request) (Answer, error) {
	c.calls.Add(1)
	a, err := c.Azure.Send(ctx, q)
	if err == nil && busy(a) {
		c.Say("  " + said(a) + ": Azure is busy, waiting")
	}
	return a, err
}

// Follow implements Azure.
func (c counting) Follow(ctx context.Context, a Answer) (End, error) { return c.Azure.Follow(ctx, a) }

func version(id string) string {
	switch {
	case strings.Contains(id, "/Microsoft.Network/"):
		return networkVersion
	case strings.Contains(id, "/Microsoft.Compute/"):
		return computeVersion
	}
	return groupVersion
}

func (r *run) look(ctx context.Context, id string) (Object, error) {
	a, err := r.send(ctx, Request{Method: methodGet, Path: id, Version: version(id)})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path.Base(id), err)
	}
	if !a.took() {
		return nil, fmt.Errorf("read %s: %s: %s", path.Base(id), said(a), a.Message)
	}
	return a.Body, nil
}

type put struct {
	Answer
	End
}

func (w put) done() bool { return w.took() && w.State == succeeded }

func (w put) String() string {
	if w.took() {
		return strings.TrimSpace(fmt.Sprintf("%d, then %s %s", w.Status, w.State, strings.Join(w.End.Codes, " ")))
	}
	return said(w.Answer)
}

func write(id string, body Object) Request {
	return Request{Method: methodPut, Path: id, Version: version(id), Body: body}
}

// put waits for the end. kind is the latency to record; may be empty.
func (r *run) put(ctx context.Context, kind string, q Request) (put, error) {
	a, err := r.send(ctx, q)
	if err != nil {
		return put{}, fmt.Errorf("write %s: %w", path.Base(q.Path), err)
	}
	w := put{Answer: a}
	if !a.took() {
		return w, nil
	}
	var seen End
	if kind != "" {
		seen = r.watch(ctx, q.Path, a)
	}
	if w.End, err = r.Azure.Follow(ctx, a); err != nil {
		return w, fmt.Errorf("write %s: its end is not known: %w", path.Base(q.Path), err)
	}
	if kind != "" && w.done() {
		if seen.Over.IsZero() {
			seen = w.End
		}
		r.samples = append(r.samples, sample{kind, spanOf(a, seen), seen.Over.Equal(a.At)})
	}
	return w, nil
}

// watchEvery is the resolution of latencies. Operations ask for polls every 10 s; the resource
// itself may be read more often.
const watchEvery = 2 * time.Second

// watch returns when the write finished; zero if unknown.
func (r *run) watch(ctx context.Context, id string, a Answer) End {
	seen, latest := End{Over: a.At}, a
	for {
		switch {
		case !latest.took():
			return End{}
		case text(properties(latest.Body), "provisioningState") != updating:
			return seen
		}
		seen.Running = latest.At
		err := sleep.For(ctx, watchEvery)
		if err == nil {
			latest, err = r.Azure.Send(ctx, Request{Method: methodGet, Path: id, Version: version(id)})
		}
		if err != nil {
			return End{}
		}
		seen.Over = latest.At
	}
}

func (r *run) note(did string, w put, saw string, questions ...string) {
	s := Seen{Did: did, Status: w.Status, Codes: slices.Concat(w.Answer.Codes, w.End.Codes), Ended: w.State, Saw: saw}
	for _, q := range questions {
		r.findings[q].Seen = append(r.findings[q].Seen, s)
	}
}

func (r *run) settle(question string, a behaviour.Answer, reason string) {
	f := r.findings[question]
	f.Answer, f.Why = a, reason
	if a == "" {
		r.Say("  " + question + " stays open: " + Redact(reason, r.secrets()...))
		return
	}
	r.Say(fmt.Sprintf("  %s: %s", question, a))
}

// spare returns an address that no pool had before.
func (r *run) spare() member {
	r.spares++
	return member{name: fmt.Sprintf("spare-%d", r.spares), ip: spareIP(r.spares), state: none}
}

func serving(state string) member { return member{"machine", servingIP, state} }
