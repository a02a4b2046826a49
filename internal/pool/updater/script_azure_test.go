// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// poolVerb creates a pool in Azure, or writes it as another client:
//
//	pool BALANCER/POOL holds=(NODE=IP, …)
func poolVerb(s *stage, c *command) {
	id := c.pool(c.word())
	holds := c.addresses("holds")
	s.set(func() {
		p := s.pools[id.Key()]
		if p == nil {
			p = &lb.Pool{ID: id}
			s.pools[id.Key()] = p
		}
		p.Etag, p.Addresses = nextEtag(p.Etag), holds
	})
}

// answer is Azure's response to a call that is not served.
type answer struct {
	says       string
	given      armerror.Failure
	retryAfter string
	plain      bool // an unclassified error
	thenStop   bool // the workers stop while the response is in flight
	times      int
}

// answerVerb queues responses to the next calls for a pool; calls without one are served:
//
//	answer get|put BALANCER/POOL STATUS|gate-closed|lost|error
//	    [retry-after=VALUE] [code=CODE] [target-gone] [times=N] [then=stop]
func answerVerb(s *stage, c *command) {
	call, id, word := strings.ToUpper(c.word()), c.pool(c.word()), c.word()
	a := answer{says: word, times: c.number("times", 1), thenStop: c.only("then", "stop")}
	switch word {
	case "gate-closed":
		a.given.GateClosed = true
	case "lost":
		a.given.ResultUnknown = true
	case "error":
		a.plain = true
	default:
		status, err := strconv.Atoi(word)
		if err != nil {
			c.wrong("%v", err)
		}
		a.given.Status, a.given.TargetMissing = status, c.says("target-gone")
	}
	if code, ok := c.value("code"); ok {
		a.given.Codes = []string{code}
		a.says += " " + code
	}
	if value, ok := c.value("retry-after"); ok {
		a.retryAfter = value
		a.says += " Retry-After: " + value
	}
	key := call + " " + spellPool(id)
	s.set(func() { s.answers[key] = append(s.answers[key], a) })
}

// lined takes the next queued response. The caller holds s.mu.
func (s *stage) lined(call string) (answer, bool) {
	line := s.answers[call]
	if len(line) == 0 {
		return answer{}, false
	}
	line[0].times--
	if line[0].times == 0 {
		s.answers[call] = line[1:]
	}
	return line[0], true
}

// err returns the error that the adapter makes of a response, with the same table and Retry-After
// parsing.
func (a answer) err() error {
	cause := errors.New("Azure says " + a.says)
	if a.plain {
		return cause
	}
	given := a.given
	given.RetryAt, _ = ratelimit.RetryAfter(http.Header{"Retry-After": {a.retryAfter}}, time.Now())
	return armerror.Classify(given, cause)
}

// ResolveMachines implements Azure: the scripts have no network interfaces.
func (s *stage) ResolveMachines(_ context.Context, p lb.Pool) (lb.Pool, error) { return p, nil }

// GetPool implements Azure.
func (s *stage) GetPool(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	s.set(func() { s.attemptBegins(id) })
	var read lb.Pool
	err := s.serve(ctx, "GET", id, "", s.readTakes, func() (string, error) {
		p := s.pools[id.Key()]
		if p == nil {
			return "404", armerror.Classify(armerror.Failure{Status: http.StatusNotFound, TargetMissing: true}, errors.New("no such pool"))
		}
		read = *p
		read.Addresses = slices.Clone(p.Addresses)
		return "200 " + spellMembers(p.Addresses), nil
	})
	return read, err
}

// PutPool implements Azure.
func (s *stage) PutPool(ctx context.Context, p lb.Pool) (lb.Pool, error) {
	err := s.serve(ctx, "PUT", p.ID, " "+spellMembers(p.Addresses), s.writeTakes, func() (string, error) {
		stored := s.pools[p.ID.Key()]
		if stored.Etag != p.Etag {
			return "412", armerror.Classify(armerror.Failure{Status: http.StatusPreconditionFailed}, errors.New("another etag"))
		}
		p.Etag, p.Provisioning = nextEtag(p.Etag), lb.Succeeded
		*stored = p
		return "200", nil
	})
	return p, err
}

// serve is one call. After its duration it returns the queued response, or else the result of work.
func (s *stage) serve(ctx context.Context, call string, id lb.PoolID, body string, takes time.Duration, work func() (string, error)) error {
	line := call + " " + spellPool(id)
	s.set(func() { s.callBegins(line, id) })
	if takes > 0 {
		s.set(func() { s.say("%s%s ...", line, body) })
		body = ""
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			s.set(func() { s.say("%s -> no answer: %v", line, ctx.Err()) })
			return armerror.Classify(armerror.Failure{ResultUnknown: call == "PUT"}, ctx.Err())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, scripted := s.lined(line)
	if !scripted {
		want, err := work()
		s.say("%s%s -> %s", line, body, want)
		return err
	}
	s.say("%s%s -> %s", line, body, a.says)
	if a.thenStop {
		s.stopNow()
	}
	return a.err()
}

// Enter implements Azure without gates.
func (s *stage) Enter(lb.LoadBalancerID) (until time.Time, reason string) { return time.Time{}, "" }

func nextEtag(etag string) string {
	n, _ := strconv.Atoi(etag)
	return strconv.Itoa(n + 1)
}
