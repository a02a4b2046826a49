// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/leader"
)

// newLeader returns a leading process and its clock.
func newLeader() (*leader.Fence, *time.Duration) {
	current := new(time.Duration)
	f := leader.NewFence(10*time.Second, func() time.Duration { return *current })
	f.RecordRenew(leader.Epoch{Lease: "weir-system/weir-controller"}, 0)
	return f, current
}

func fencedBy(f *leader.Fence) func(*Options) { return func(o *Options) { o.Fence = f } }

// checkShutdown checks that an error is a shutdown: no operation fails or is retried because of it.
func checkShutdown(t *testing.T, err error, undecided bool) {
	t.Helper()
	f := armerror.FromError(err)
	if f == nil || f.Class != armerror.Shutdown || f.MayBeApplied != undecided || !errors.Is(err, leader.ErrNotLeader) {
		t.Errorf("got %v, want a shutdown, undecided: %t", err, undecided)
	}
}

// After leadership was lost, reads pass and writes do not.
func TestWriteIsFencedWithoutLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence, current := newLeader()
		arm := &fakeARM{answer: replySequence(shown)}
		c := newClient(t, arm, fencedBy(fence))
		pool, err := c.GetPool(t.Context(), webPool)
		if err != nil {
			t.Fatal(err)
		}
		*current = 20 * time.Second
		_, err = c.PutPool(t.Context(), pool)
		checkShutdown(t, err, false)
		checkShutdown(t, c.DeleteLoadBalancer(t.Context(), lb.LoadBalancer{ID: webPool.LoadBalancer, Origin: struct{}{}, Etag: "e"}), false)
		if _, err := c.GetPool(t.Context(), webPool); err != nil {
			t.Errorf("a read: %v", err)
		}
		if n := arm.count(http.MethodPut) + arm.count(http.MethodDelete); n != 0 {
			t.Errorf("%d writes left", n)
		}
	})
}

// Leadership is lost between two tries of the SDK: the second is not sent, and the first may
// succeed.
func TestRepeatedWriteChecksRelevanceAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence, current := newLeader()
		arm := &fakeARM{}
		arm.answer = func(_ int, r *http.Request) reply {
			if r.Method == http.MethodGet {
				return shown
			}
			*current = 20 * time.Second
			return reply{status: http.StatusServiceUnavailable}
		}
		c := newClient(t, arm, fencedBy(fence))
		pool, err := c.GetPool(t.Context(), webPool)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.PutPool(t.Context(), pool)
		checkShutdown(t, err, true)
		if n := arm.count(http.MethodPut); n != 1 {
			t.Errorf("%d writes left, want one", n)
		}
	})
}

// slowDialTransport connects so slowly that leadership is lost before the body is sent.
type slowDialTransport struct {
	*fakeARM

	now *time.Duration
}

func (s slowDialTransport) Do(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return s.fakeARM.Do(req)
	}
	*s.now = 20 * time.Second
	if _, err := io.ReadAll(req.Body); err != nil {
		return nil, err // like net/http
	}
	return s.fakeARM.Do(req)
}

func TestBodyIsFencedAfterLeadershipLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence, current := newLeader()
		arm := &fakeARM{answer: replySequence(shown)}
		c := newClient(t, arm, fencedBy(fence), func(o *Options) { o.Transport = slowDialTransport{arm, current} })
		pool, err := c.GetPool(t.Context(), webPool)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.PutPool(t.Context(), pool)
		checkShutdown(t, err, true) // a part may have been sent
		if n := arm.count(http.MethodPut); n != 0 {
			t.Errorf("%d writes left", n)
		}
	})
}
