// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// The cached size per object is limited: ten thousand objects are a large cluster.
func TestCachedObjectsAreSmall(t *testing.T) {
	const objects = 500
	for _, tt := range []struct {
		name string
		make func(i int) client.Object
		most uint64
	}{
		{"slice of ten endpoints", newDecodedSlice, 1300},
		{"BackendPool in sync", newDecodedPool, 1400},
	} {
		before := heapInUse()
		kept := make([]client.Object, objects)
		for i := range kept {
			kept[i] = tt.make(i)
		}
		each := (heapInUse() - before) / objects
		runtime.KeepAlive(kept)
		if t.Logf("%s: %d bytes", tt.name, each); each > tt.most {
			t.Errorf("%s: %d bytes are kept, want %d at most", tt.name, each, tt.most)
		}
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	for range 3 { // unique.Handle values are freed one collection later
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// decodeObject returns an object with separate memory, like an informer.
func decodeObject[T any](object *T, strip func(*T)) *T {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	got := new(T)
	if err := json.Unmarshal(text, got); err != nil {
		panic(err)
	}
	strip(got)
	return got
}

func metaOf(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), ResourceVersion: fmt.Sprint(1000000 + i),
		CreationTimestamp: metav1.Unix(0, 0), Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprint("web-", i), "app": "web"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "theirs", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:spec":"%01000d"}`, i))}},
	}
}

func newDecodedSlice(i int) client.Object {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metaOf(i), AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}}}
	for e := range 10 {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprint("10.1.0.", e)}, NodeName: new(fmt.Sprint("node-", (i+e)%50)), Zone: new("1"), Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return decodeObject(s, stripSlice)
}

func newDecodedPool(i int) client.Object {
	p := &v1alpha1.BackendPool{ObjectMeta: metaOf(i)}
	p.Finalizers = []string{v1alpha1.Finalizer}
	p.Spec = v1alpha1.BackendPoolSpec{
		ServiceRef: &v1alpha1.ServiceReference{Name: p.Name}, LoadBalancer: v1alpha1.LoadBalancerReference{Name: "kubernetes"}, PoolName: p.Name, IPFamily: "IPv4",
	}
	p.Status = v1alpha1.BackendPoolStatus{
		Desired: new(int32(10)), Observed: new(int32(10)), Foreign: new(int32(0)), RetriesUsed: new(int32(0)), RetryBudget: new(int32(3)),
		PoolID: fmt.Sprintf("/subscriptions/%s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/%s", p.UID, p.Name),
	}
	for e := range 10 {
		p.Status.WrittenAddresses = append(p.Status.WrittenAddresses, fmt.Sprint("10.0.0.", e))
	}
	for _, c := range []string{v1alpha1.ConditionSynced, v1alpha1.ConditionParked, v1alpha1.ConditionPaused} {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInSync, Message: "in sync with 10 nodes", LastTransitionTime: metav1.Unix(0, 0)})
	}
	return decodeObject(p, stripPool)
}

// Ten thousand pool statuses share equal strings.
func TestStatusesShareWhatTheyHaveInCommon(t *testing.T) {
	decoded := func() *v1alpha1.BackendPoolStatus { // with separate memory
		text := func(s string) string { return string([]byte(s)) }
		return &v1alpha1.BackendPoolStatus{
			Conditions:       append(make([]metav1.Condition, 0, 4), metav1.Condition{Type: text("Synced"), Status: metav1.ConditionStatus(text("True")), Reason: text("InSync"), Message: text("in sync with 1 node")}),
			WrittenAddresses: append(make([]string, 0, 16), text("10.0.0.1")),
		}
	}
	a := InternStatus(decoded())
	heapInUse() // free unreferenced memory
	b := InternStatus(decoded())
	isSame := func(x, y string) {
		t.Helper()
		if x != y || unsafe.StringData(x) != unsafe.StringData(y) {
			t.Errorf("%q is in memory twice", x)
		}
	}
	isSame(a.Conditions[0].Type, b.Conditions[0].Type)
	isSame(string(a.Conditions[0].Status), string(b.Conditions[0].Status))
	isSame(a.Conditions[0].Reason, b.Conditions[0].Reason)
	isSame(a.Conditions[0].Message, b.Conditions[0].Message)
	isSame(a.WrittenAddresses[0], b.WrittenAddresses[0])
	if cap(a.Conditions) != 1 || cap(a.WrittenAddresses) != 1 {
		t.Errorf("room for %d conditions and %d addresses is kept", cap(a.Conditions), cap(a.WrittenAddresses))
	}
}
