// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"

	"weir.dev/weir/internal/backoff"
)

// mostRests bounds what is remembered: far more resources than answer with a Retry-After
// at a time. Beyond it the one goes first that would be over first.
const mostRests = 4096

// rest is until when a resource wants no call, and what it answered.
type rest struct {
	until time.Time
	after string
}

// rests holds what resources have asked for with Retry-After, whatever the status of the
// refusal: whoever comes next, for whatever reason, waits as well. As a policy it sits
// behind the SDK's retries, so that it hears of each answer and holds up those, too.
type rests struct {
	mu sync.Mutex // guards all below; never held during a request
	of map[string]rest
}

func newRests() *rests { return &rests{of: map[string]rest{}} }

// restKey is the resource that a request is for: reads and writes of it rest alike, and
// all pages of a list. An operation that is polled is a resource of its own.
func restKey(r *http.Request) string { return strings.ToLower(r.URL.EscapedPath()) }

// Do implements policy.Policy.
func (r *rests) Do(req *policy.Request) (*http.Response, error) {
	key := restKey(req.Raw())
	if found, ok := r.at(key, time.Now()); ok {
		return nil, &resting{rest: found, what: callOf(req.Raw().Context()).subject()}
	}
	resp, err := req.Next()
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		now := time.Now()
		if until, named := backoff.RetryAfter(resp.Header, now); named && until.After(now) {
			r.keep(key, rest{until: until, after: answerName(resp)}, now)
		}
	}
	return resp, err
}

// at returns the rest of a resource; false if there is none.
func (r *rests) at(key string, now time.Time) (rest, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.of[key]
	if ok && !found.until.After(now) {
		delete(r.of, key)
		return rest{}, false
	}
	return found, ok
}

// keep never ends a rest earlier than it would have ended.
func (r *rests) keep(key string, next rest, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !next.until.After(r.of[key].until) {
		return
	}
	r.of[key] = next
	if len(r.of) > mostRests {
		r.trim(now)
	}
}

// trim makes room. The caller holds the lock.
func (r *rests) trim(now time.Time) {
	first := ""
	for key, found := range r.of {
		if !found.until.After(now) {
			delete(r.of, key)
		} else if first == "" || found.until.Before(r.of[first].until) {
			first = key
		}
	}
	if len(r.of) > mostRests {
		delete(r.of, first)
	}
}

// answerName is a refusal in a word or two.
func answerName(resp *http.Response) string {
	name := http.StatusText(resp.StatusCode)
	if codes := codesOf(resp); len(codes) > 0 {
		name = codes[len(codes)-1]
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", name))
}

// resting says that a request was not sent, because the resource wants no call yet. It wraps
// retryrepectthrottled.ErrTooManyRequest, as a closed gate does.
type resting struct {
	rest
	what string
}

// Error implements error.
func (e *resting) Error() string {
	return fmt.Sprintf("not sent: %s asked for no call before %s, with %s", e.what, e.until.UTC().Format(time.RFC3339), e.after)
}

// Unwrap leads to retryrepectthrottled.ErrTooManyRequest.
func (e *resting) Unwrap() error {
	return &retryrepectthrottled.ThrottleError{RetryAfter: e.until}
}

// NonRetriable tells the SDK's retry policy to stop.
func (*resting) NonRetriable() {}

// subject is what a call is about, for people.
func (c *call) subject() string {
	if c == nil {
		return "Azure Resource Manager"
	}
	if c.op == opPoll {
		return "the operation on " + c.String()
	}
	return c.String()
}
