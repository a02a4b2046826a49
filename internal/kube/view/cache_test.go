// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/adminstate"
)

// tainted is the node n1 with these taints, key=value.
func tainted(uid string, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID(uid)}}
	for _, text := range taints {
		key, value, _ := strings.Cut(text, "=")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// What nobody reads of a node is not kept, and nothing of its taints if they are left alone.
func TestWhatIsKeptOfANode(t *testing.T) {
	node := func() *corev1.Node {
		n := tainted("a", adminstate.KeyOutOfService, "leaves=x", "gpu=a100")
		n.Labels = map[string]string{"zone": "1"}
		n.Annotations = map[string]string{PreemptionAnnotation: "{}", "theirs": "x"}
		n.Spec.Taints[0].TimeAdded = new(metav1.Now())
		n.Spec.ProviderID, n.Spec.Unschedulable = "azure:///x", true
		return n
	}
	want := tainted("a", adminstate.KeyOutOfService, "leaves=x")
	want.Spec.ProviderID = "azure:///x"
	want.Labels, want.Annotations = map[string]string{"zone": "1"}, map[string]string{PreemptionAnnotation: "{}"}
	want.Spec.ProviderID = "azure:///x" // which machine it is
	got := node()
	stripNode(got, &adminstate.Signals{Further: []adminstate.Pattern{{Key: "leaves", AnyValue: true}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = node()
	stripNode(got, nil)
	want.Annotations, want.Spec.Taints = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("off: %s", diff)
	}
}
