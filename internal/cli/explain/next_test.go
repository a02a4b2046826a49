// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
)

// A Service that Azure does not have as it wants it: what happens next, and which of its rules are only wanted.
func TestNextOfAService(t *testing.T) {
	for _, tt := range []struct{ reason, message, next string }{
		{servicelb.ConditionReasonProgrammed, "", ""},
		{servicelb.ConditionReasonUpdating, "", ""},
		{servicelb.ConditionReasonFailed, "403", "Weir retries by itself, after a pause that grows to some minutes; now: weir retry -n shop service/web"},
		{servicelb.ConditionReasonDeferred, "namespace shop may send no write before then", "Weir retries by itself at the time of the message"},
		{servicelb.ConditionReasonDeferred, loadbalancer.RejectedPrefix + "it", "Weir retries by itself at the time of the message; now: weir retry -n shop service/web"},
		{servicelb.ConditionReasonNotAccepted, "", "nothing until the Service changes"},
	} {
		objects := cluster()
		s := objects[0].(*corev1.Service)
		status := metav1.ConditionFalse
		if tt.reason == servicelb.ConditionReasonProgrammed {
			status = metav1.ConditionTrue
		}
		s.Status.Conditions = []metav1.Condition{{Type: servicelb.TypeProgrammed, Status: status, Reason: tt.reason, Message: tt.message, LastTransitionTime: ago(time.Hour)}}
		explanation, err := Reader{API: serverWith(objects...), Now: noon}.ExplainService(t.Context(), "shop", "web")
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := explanation.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if explanation.Service.Next != tt.next || tt.next != "" && !strings.Contains(text.String(), "  Next: "+tt.next+"\n") {
			t.Errorf("%s: %q, want %q in\n%s", tt.reason, explanation.Service.Next, tt.next, text.String())
		}
		if wanted := strings.Contains(text.String(), "a6b7d-TCP-80 (wanted; Azure may not have it)"); wanted == (status == metav1.ConditionTrue) {
			t.Errorf("%s: %s", tt.reason, text.String())
		}
	}
}

// A deleted Service of which Azure still has resources is not shown as programmed only.
func TestNextOfADeletedService(t *testing.T) {
	objects := cluster()
	s := objects[0].(*corev1.Service)
	s.DeletionTimestamp, s.Finalizers = new(ago(time.Minute)), []string{metadata.ServiceFinalizer}
	explanation, err := Reader{API: serverWith(objects...), Now: noon}.ExplainService(t.Context(), "shop", "web")
	if err != nil || explanation.Service.Next != "it is deleted, and Azure still has resources of it" {
		t.Errorf("%+v, %v", explanation.Service, err)
	}
}

// Nothing is in a pool that Azure does not have, whatever is recorded.
func TestMembersOfAMissingPool(t *testing.T) {
	objects := cluster()
	for _, o := range objects {
		if p, ok := o.(*v1alpha1.BackendPool); ok && p.Name == "web.kubernetes" {
			p.Status.Observed, p.Status.Conditions[0].Reason = new(int32(0)), v1alpha1.ReasonLoadBalancerNotFound
		}
	}
	explanation, err := Reader{API: serverWith(objects...), Now: noon}.ExplainService(t.Context(), "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range explanation.Pools[0].Members {
		got = append(got, m.Node+" "+m.State)
	}
	if text := strings.Join(got, ", "); text != "n1 Missing, n2 Missing, n3 Missing, n4 LeftOut" {
		t.Error(text)
	}
}

// A node that no pool has: the pools that would have it, and why they leave it out; otherwise why none selects it.
func TestANodeWithoutAPool(t *testing.T) {
	n, bare := placedNode("n1", "10.0.0.1", ""), placedNode("n2", "10.0.0.2", "")
	bare.Status.Addresses = nil
	all := pool("weir-system", "nodes.kubernetes", v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{}})
	none := pool("shop", "gpu", v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}}})
	of := pool("shop", "web", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}})
	for name, want := range map[string]string{
		told(t, "n2", &bare, all): "  n2     -         LeftOut: it has no InternalIP of family IPv4\n",
		told(t, "n1", &n, all):    "  n1     10.0.0.1   Missing\n",
		told(t, "n1", &n, none):   "BackendPools: none has it: no BackendPool of nodes selects its labels; pools of Services have only the nodes of their ready endpoints, and none is on it\n",
		told(t, "n1", &n, of):     "BackendPools: none has it: no BackendPool is of nodes; pools of Services",
		told(t, "n1", &n):         "BackendPools: none has it: the cluster has no BackendPool\n",
	} {
		if !strings.Contains(name, want) {
			t.Errorf("no %q in\n%s", want, name)
		}
	}
}

// The counts of a paused pool are those before the pause, and its members those of now.
func TestCountsOfAPausedPool(t *testing.T) {
	p := pool("shop", "web", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, Paused: true})
	p.Status.Conditions[0].Reason = v1alpha1.ReasonPaused
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue, LastTransitionTime: ago(5 * time.Minute)})
	pool := newPool(p, noon)
	if got := formatCounts(pool); got != "before the pause 3 were wanted, and Azure showed 4" || !pool.Since.Equal(noon.Add(-5*time.Minute)) {
		t.Errorf("%q, since %s", got, pool.Since)
	}
}
