// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/provisioning/objects"
)

// newTaintedNode returns node n1 with these taints, key=value.
func newTaintedNode(uid string, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID(uid)}}
	for _, text := range taints {
		key, value, _ := strings.Cut(text, "=")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// Unused fields of a node are dropped, and all taints if admin states are disabled.
func TestCachedNode(t *testing.T) {
	node := func() *corev1.Node {
		n := newTaintedNode("a", lb.KeyOutOfService, "leaves=x", "gpu=a100")
		n.Labels = map[string]string{"zone": "1"}
		n.Annotations = map[string]string{metadata.PreemptionAnnotation: "{}", lb.DelayAnnotation: "true", "theirs": "x"}
		n.Spec.Taints[0].TimeAdded = new(metav1.Now())
		n.Spec.ProviderID, n.Spec.Unschedulable = "azure:///x", true
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "kubelet is posting ready status"},
			{Type: "PreemptionScheduled", Status: corev1.ConditionTrue, Reason: "SpotEvictionIncoming", Message: strings.Repeat("soon ", 200), LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Unix(7, 0)},
			{Type: "DrainInProgress", Status: corev1.ConditionTrue, Reason: "Drain"}, {Type: "MaintenanceInProgress", Status: corev1.ConditionFalse}, {Type: "Drained", Status: corev1.ConditionTrue},
		}
		return n
	}
	want := newTaintedNode("a", lb.KeyOutOfService, "leaves=x")
	want.Spec.ProviderID = "azure:///x"
	want.Labels, want.Annotations = map[string]string{"zone": "1"}, map[string]string{metadata.PreemptionAnnotation: "{}", lb.DelayAnnotation: "true"}
	want.Spec.ProviderID = "azure:///x" // identifies the machine
	want.Status.Conditions = []corev1.NodeCondition{{Type: "PreemptionScheduled", Status: corev1.ConditionTrue, Message: strings.Repeat("soon ", 200)[:64], LastTransitionTime: metav1.Unix(7, 0)}, {Type: "DrainInProgress", Status: corev1.ConditionTrue}}
	got := node()
	stripNode(got, &lb.DrainSignals{ExtraPatterns: []lb.ConditionPattern{{Key: "leaves", AnyValue: true}}, ExtraConditions: []string{"DrainInProgress", "MaintenanceInProgress"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = node()
	stripNode(got, nil)
	want.Annotations, want.Spec.Taints, want.Status.Conditions = nil, nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("off: %s", diff)
	}
}

// A slice keeps the nodes of endpoints that take traffic, and the number of those without a node.
func TestCachedSlice(t *testing.T) {
	takes, drains := discoveryv1.EndpointConditions{}, discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	not := discoveryv1.EndpointConditions{Ready: new(false)}
	slice := func() *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-1", UID: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "theirs"}},
				Labels: map[string]string{discoveryv1.LabelServiceName: "web", "theirs": "x"},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		}
		for _, e := range []discoveryv1.Endpoint{
			{NodeName: new("n2"), Conditions: takes}, {NodeName: new("n1"), Conditions: drains}, {NodeName: new("n2"), Conditions: not},
			{NodeName: new("n2"), Conditions: drains}, {NodeName: new("n3"), Conditions: not}, {Conditions: takes}, {Conditions: takes}, {Conditions: not},
		} {
			e.Addresses, e.Zone = []string{"10.0.0.1"}, new("1")
			s.Endpoints = append(s.Endpoints, e)
		}
		return s
	}
	current := slice()
	stripSlice(current)
	stripSlice(current) // informers may transform twice
	want := metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}
	if diff := cmp.Diff(want, current.ObjectMeta); diff != "" || current.Ports != nil || len(current.Endpoints) != 1 {
		t.Errorf("%d endpoints, %v: %s", len(current.Endpoints), current.Ports, diff)
	}
	if got := current.DeepCopy().Endpoints[0].Addresses; !slices.Equal(got, []string{"", "", "n1", "n2"}) {
		t.Errorf("kept: %q", got)
	}
	if got := NodesOf(current); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("nodes: %q", got)
	}
	before := *slice()
	before.Endpoints = slices.DeleteFunc(before.Endpoints, func(e discoveryv1.Endpoint) bool { return e.NodeName != nil })
	stripSlice(&before)
	if SameMembers(&before, current) || !SameMembers(current, current.DeepCopy()) || SameMembers(current, &discoveryv1.EndpointSlice{AddressType: current.AddressType}) {
		t.Error("versions of a slice are taken for each other, or one for another")
	}
}

// Property: the kept endpoints give the same members as all endpoints.
func TestLawOfCachedSlices(t *testing.T) {
	condition := func() *rapid.Generator[*bool] { return rapid.SampledFrom([]*bool{nil, new(false), new(true)}) }
	known := func(name string) (membership.Node, bool) {
		return membership.Node{Name: name, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, name[0]})}}, name != "z"
	}
	rapid.Check(t, func(t *rapid.T) {
		s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		for range rapid.IntRange(0, 12).Draw(t, "endpoints") {
			e := discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{
				Ready: condition().Draw(t, "ready"), Serving: condition().Draw(t, "serving"), Terminating: condition().Draw(t, "terminating"),
			}}
			if name := rapid.SampledFrom([]string{"", "a", "b", "c", "z"}).Draw(t, "node"); name != "" {
				e.NodeName = &name
			}
			s.Endpoints = append(s.Endpoints, e)
		}
		before := s.DeepCopy()
		stripSlice(s)
		want := membership.OfService([]membership.Slice{SliceOf(before)}, known, lb.IPv4)
		if diff := cmp.Diff(want, membership.OfService([]membership.Slice{SliceOf(s)}, known, lb.IPv4), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Fatalf("%+v: %s", before.Endpoints, diff)
		}
	})
}

// A BackendPool with Weir's finalizer keeps only the status fields used before loading; others keep all.
func TestCachedBackendPool(t *testing.T) {
	pool := func(finalizers ...string) *v1alpha1.BackendPool {
		return &v1alpha1.BackendPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Finalizers: finalizers, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "theirs"}}},
			Spec:       v1alpha1.BackendPoolSpec{PoolName: "web", Paused: true},
			Status: v1alpha1.BackendPoolStatus{
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSynced}}, WrittenAddresses: []string{"10.0.0.1"}, Desired: new(int32(1)),
				LastWrite: new(metav1.Unix(0, 0)), PoolID: "/x", Foreign: new(int32(0)), Down: []v1alpha1.DownAddress{{Address: "10.0.0.1"}}, MadeFor: "nodes",
			},
		}
	}
	for _, finalizers := range [][]string{nil, {"theirs"}, {v1alpha1.Finalizer}, {"theirs", v1alpha1.Finalizer}} {
		want, got := pool(finalizers...), pool(finalizers...)
		want.ManagedFields = nil
		if slices.Contains(finalizers, v1alpha1.Finalizer) {
			want.Status.Conditions, want.Status.WrittenAddresses, want.Status.Desired, want.Status.LastWrite = nil, nil, nil, nil
		}
		got.Annotations = map[string]string{"theirs": "much"}
		if len(finalizers) > 0 { // a retry annotation is kept up to the length of a time
			want.Annotations, got.Annotations[v1alpha1.RetryNowAnnotation] = map[string]string{v1alpha1.RetryNowAnnotation: "now"}, "now"
		} else {
			got.Annotations[v1alpha1.RetryNowAnnotation] = strings.Repeat("x", maxRetryLength+1)
		}
		stripPool(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", finalizers, diff)
		}
	}
}

// A Provision keeps only the inputs of decisions; it is read again before acting.
func TestCachedProvision(t *testing.T) {
	provision := func() *v1alpha1.Provision {
		return &v1alpha1.Provision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", Annotations: map[string]string{v1alpha1.CancelAnnotation: "now"}},
			Spec:       v1alpha1.ProvisionSpec{Steps: []v1alpha1.ProvisionStep{{Name: "a"}}},
			Status: v1alpha1.ProvisionStatus{
				State: v1alpha1.ProvisionWaiting, Job: "a/b", Attempts: 2, Policy: []v1alpha1.PolicyValue{{Name: "retries", Value: "5", From: "built-in"}},
				LastAttempt: &v1alpha1.ProvisionAttempt{Number: 2}, Conditions: []metav1.Condition{{Type: v1alpha1.ProvisionAccepted, Message: "it counts"}},
			},
		}
	}
	want, got := provision(), provision()
	want.Spec.Steps, want.Annotations["job"] = nil, objects.ParseWanted(got).Job
	got.Annotations["job"], got.Annotations["refusal"] = "of a tenant", "of a tenant"
	got.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "theirs"}}
	got.Annotations["theirs"], got.Labels = "much", map[string]string{"theirs": "much"}
	got.Status.Steps = []v1alpha1.StepStatus{{Name: "a", Inventory: []string{"much"}}}
	got.Status.Conditions = append(got.Status.Conditions, metav1.Condition{Type: v1alpha1.ProvisionReady})
	options := objects.ProvisionerCacheOptions()
	var strip toolscache.TransformFunc
	for kind, of := range options.ByObject {
		if _, ok := kind.(*v1alpha1.Provision); ok {
			strip = of.Transform
		}
	}
	kept, err := strip(got)
	if diff := cmp.Diff(want, kept); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	others, err := options.DefaultTransform(&v1alpha1.Partner{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}, ManagedFields: got.ManagedFields}})
	if diff := cmp.Diff(&v1alpha1.Partner{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}}, others); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}

// A request without a response in the status is open; it may be longer than the recorded part.
func TestHasOpenRequest(t *testing.T) {
	long := strings.Repeat("1", 100)
	p := &v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.RetryNowAnnotation: long}}}
	if !objects.HasOpenRequest(p) {
		t.Error("the status answers no request")
	}
	if p.Status.LastHandledRetryNowAt = long[:64]; objects.HasOpenRequest(p) {
		t.Error("the status answers it")
	}
}

// A cached Provision has no field that a tenant can make large, and leads to the same decision.
func TestALargeProvisionInTheCache(t *testing.T) {
	large := func() *v1alpha1.Provision {
		long := strings.Repeat("x", 200<<10)
		p := &v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{long}, Annotations: map[string]string{"theirs": long, v1alpha1.ResetAnnotation: long}}}
		p.Spec.Steps = []v1alpha1.ProvisionStep{
			{Name: "a", DependsOn: []string{"b"}, Job: &v1alpha1.JobStep{Args: []string{long}}}, {Name: "b", DependsOn: []string{"a"}},
		}
		return p
	}
	p := large()
	objects.StripProvision(p)
	text, err := json.Marshal(p)
	if err != nil || len(text) > 2<<10 {
		t.Errorf("%d bytes are kept, %v", len(text), err)
	}
	want, got := objects.ParseWanted(large()), objects.CachedWanted(p)
	if got.Job != want.Job || got.Rejection == nil || got.Rejection.Error() != want.Rejection.Error() || objects.ProvisionRequests(p) != objects.ProvisionRequests(large()) {
		t.Errorf("got %v, want %v", got, want)
	}
	if reason := want.Rejection.Error(); !strings.Contains(reason, "the spec has 200 KiB as JSON, and at most 128 KiB") || !strings.Contains(reason, "\n") {
		t.Errorf("refused for %s", reason)
	}
}
