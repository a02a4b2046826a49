// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

var oneHour = k8s.QueueBackoff{BaseDelay: time.Hour, MaxDelay: time.Hour, QPS: 0.001, Burst: 1}

func (s *stage) countFailure() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures
}

// With a backoff of one hour, an error costs an hour, but an event is handled at once, even for an
// object in backoff.
func TestTheBackOffHoldsUpNoEvent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.runController(oneHour)
	s.waitInSync(1)
	s.rejectNextReport(http.StatusForbidden)
	s.waitFault(2 * time.Second) // 400 times the default
	if c := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSynced); c == nil || c.Reason == v1alpha1.ReasonInSync {
		t.Errorf("%+v: the status was written within the back-off", c)
	}
	s.moveEndpoints(3)
	if elapsed := s.waitInSync(3); elapsed > catchUpTime {
		t.Errorf("an event took %s", elapsed)
	}
	if got := s.countFailure(); got != 1 {
		t.Errorf("%d reconciliations failed", got)
	}
	s.checkRecorded()
}

// rejectNextReport moves the endpoints. The record is accepted; the status write fails twice:
// from the updater, and from the work queue, which backs off.
func (s *stage) rejectNextReport(status int) {
	s.Helper()
	s.proxy.AddRule(apifault.Rule{Request: apifault.Request{Resource: "backendpools/status"}, Skip: 1, Times: 2, Fault: hasText(status, "")})
	s.moveEndpoints(2)
	controlplane.WaitUntil(s.T, func() string {
		if s.countFailure() > 0 {
			return ""
		}
		return "no reconciliation failed"
	})
}

// Requests that failed because of the API server are retried as soon as any request succeeds, such
// as a leader lease renewal.
func TestTheBackOffEndsWhenTheServerIsWell(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusTooManyRequests} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.runController(oneHour, asLeader(s))
			s.waitInSync(1)
			s.rejectNextReport(status)
			if elapsed := s.waitInSync(2); elapsed > catchUpTime {
				t.Errorf("it took %s", elapsed)
			}
			if got := s.countFailure(); got != 1 {
				t.Errorf("%d reconciliations failed", got)
			}
			s.checkRecorded()
		})
	}
}

// The same holds for the Services' queue: it reports an endpoint on an unknown node.
func TestAServiceIsTriedAgainWhenTheServerIsWell(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.runController(oneHour, asLeader(s))
	s.waitInSync(1)
	s.proxy.AddRule(apifault.Rule{Request: apifault.Request{Resource: "backendpools/status"}, Times: 1, Fault: hasText(http.StatusServiceUnavailable, "")})
	s.moveEndpoints(1, nodes+1) // which writes nothing to Azure
	controlplane.WaitUntil(t, func() string {
		if c := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSynced); !strings.Contains(c.Message, s.node(nodes+1)) {
			return c.Message
		}
		return ""
	})
	if got := s.countFailure(); got != 1 {
		t.Errorf("%d reconciliations failed", got)
	}
}

// Backoff does not delay a scheduled reconciliation, and Azure failures do not enter it: the
// updater has its own pace.
func TestTheBackOffHoldsUpNoLookAndNoLane(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.runController(oneHour)
	s.waitInSync(1)
	s.create(&v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "late"},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef:   &v1alpha1.ServiceReference{Name: "web"},
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: s.ns}, PoolName: "late",
		},
	})
	reason := func() string {
		p := &v1alpha1.BackendPool{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "late"}, p); err != nil {
			return err.Error()
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
			return c.Reason
		}
		return ""
	}
	becomes := func(want string) {
		t.Helper()
		controlplane.WaitUntil(t, func() string {
			if got := reason(); got != want {
				return "late is " + got + ", want " + want
			}
			return ""
		})
	}
	becomes(v1alpha1.ReasonPoolNotFound)
	if err := s.cloud.Put(network+"/loadBalancers/"+s.ns+"/backendAddressPools/late", []byte(`{"name":"late","properties":{"virtualNetwork":{"id":"`+vnetID+`"}}}`)); err != nil {
		t.Fatal(err)
	}
	becomes(v1alpha1.ReasonInSync)

	s.conflictNextWrites(1)
	s.moveEndpoints(4)
	if elapsed := s.waitInSync(4); elapsed > catchUpTime {
		t.Errorf("a conflict cost %s, and the lane's interval is a second", elapsed)
	}
	if got := s.countFailure(); got != 0 {
		t.Errorf("%d errors came to the work queue", got)
	}
}

// A controller that starts without an API server waits for it.
func TestAControllerWaitsForTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.proxy.RefuseConnections()
	healed := make(chan error, 1)
	go func() {
		s.waitFault(3 * time.Second)
		healed <- s.proxy.Restore()
	}()
	s.runController(k8s.DefaultQueueBackoff())
	if err := <-healed; err != nil {
		t.Fatal(err)
	}
	if elapsed := s.waitInSync(1); elapsed > 2*catchUpTime {
		t.Errorf("it took %s after the API server was back", elapsed)
	}
}
