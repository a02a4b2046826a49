// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

type activeFault struct {
	rule string
	*faultAction
}

// resetRules gives each rule its own generator, so one rule's draws do not depend on another's.
func (s *faultScript) resetRules(seed uint64, now time.Time) {
	s.startedAt = now
	for i, r := range s.rules {
		r.random = rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // repeatable on purpose
		r.seen, r.fired = 0, 0
	}
}

func (s *faultScript) matchRequest(req *http.Request, kind Kind, now time.Time) *activeFault {
	var acting *activeFault
	for _, r := range s.rules {
		if r.countMatch(req, kind, now.Sub(s.startedAt)) && acting == nil && r.isDue() {
			r.fired++
			acting = &activeFault{rule: r.Name, faultAction: &r.Action}
		}
	}
	return acting
}

func (r *faultRule) countMatch(req *http.Request, kind Kind, age time.Duration) bool {
	m := r.Match
	if m.Method != "" && m.Method != req.Method || m.Kind != "" && m.Kind != kind {
		return false
	}
	if !strings.Contains(req.UserAgent(), m.UserAgent) {
		return false
	}
	if r.glob != nil && !r.glob.MatchString(req.URL.Path) {
		return false
	}
	if age < time.Duration(m.After) || m.Until > 0 && age >= time.Duration(m.Until) {
		return false
	}
	r.seen++
	return true
}

func (r *faultRule) isDue() bool {
	m := r.Match
	switch {
	case m.MaxMatches > 0 && r.fired >= m.MaxMatches:
		return false
	case m.Nth > 0 && r.seen != m.Nth:
		return false
	case m.Every > 0 && r.seen%m.Every != 0:
		return false
	}
	return m.Probability == nil || r.random.Float64() < *m.Probability
}

// applyFault waits without holding the lock.
func (e *Emulator) applyFault(x *exchange) *Problem {
	e.mu.Lock()
	if e.faults != nil {
		x.fault = e.faults.matchRequest(x.req, x.route.kind, time.Now())
	}
	e.mu.Unlock()
	f := x.fault
	if f == nil {
		return nil
	}
	x.call.Fault = f.rule
	if f.Delay > 0 {
		wait := time.NewTimer(time.Duration(f.Delay))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-x.req.Context().Done():
			x.done = true
			return nil
		}
	}
	if f.BumpEtag {
		e.bumpEtag(x.route)
	}
	if f.Applied {
		return nil
	}
	x.done = f.Drop || f.Status != 0
	f.writeResponse(x)
	return nil
}

// bumpEtag simulates a concurrent write.
func (e *Emulator) bumpEtag(r route) {
	if r.id.root == nil || r.id.name == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if agg := e.aggregates[r.id.rootKey()]; agg != nil {
		e.revision++
		e.renewEtag(agg)
	}
}

func (f *activeFault) writeResponse(x *exchange) {
	if f.Status == 0 {
		return
	}
	x.status, x.body = f.Status, nil
	x.header = http.Header{}
	switch {
	case f.Body != nil:
		x.raw = []byte(*f.Body)
	case f.Status >= 400 || f.Code != "":
		p := problemWithDefaults(f.Status, f.Code, f.Message, f.rule)
		p.Details = f.Details
		x.body, x.call.ErrorCode = p.toBody(), p.Code
	default:
		x.raw = []byte{}
	}
}

func (x *exchange) answerAppliedWrite() {
	if x.fault.Applied {
		x.fault.writeResponse(x)
	}
}

func (f *activeFault) copyPollFault() *pollFault {
	if f.Polls == nil {
		return nil
	}
	polls := *f.Polls
	return &polls
}

func (p *pollFault) toProblem() *Problem {
	problem := problemWithDefaults(p.Status, p.Code, p.Message, "polls")
	problem.RetryAfter = time.Duration(p.RetryAfter)
	return problem
}

func (o *operationFault) isStuck() bool { return o != nil && o.Stuck }

func (o *operationFault) toProblem() *Problem {
	if o == nil || o.Fail == nil {
		return nil
	}
	p := problemWithDefaults(0, o.Fail.Code, o.Fail.Message, "operation.fail")
	p.Details = o.Fail.Details
	return p
}

func problemWithDefaults(status int, code, message, rule string) *Problem {
	if code == "" {
		code = strings.ReplaceAll(http.StatusText(status), " ", "")
	}
	if message == "" {
		message = fmt.Sprintf("The fault script asks for this error (%s).", rule)
	}
	return &Problem{Status: status, Code: code, Message: message}
}
