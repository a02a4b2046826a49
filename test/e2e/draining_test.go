// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/armemu"
)

// With the roles of config a node whose eviction is announced is tainted, and counted; so is
// one with a taint that azure.json adds.
func TestASpotEvictionTaintsItsNode(t *testing.T) {
	l := newLab(t, armemu.Options{})
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","nodeAdminStateTaints":["example.com/leaves=`+l.namespace+`"]}`)
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	weir := l.controller("--leader-elect=false")
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: l.namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: n1}, Reason: "PreemptScheduled",
	}
	l.must(cluster.Create(t.Context(), event))
	t.Cleanup(func() { _ = cluster.Delete(context.WithoutCancel(t.Context()), event) })
	if out, err := kubectl(t.Context(), "taint", "node", n2, "example.com/leaves="+l.namespace+":NoSchedule"); err != nil {
		t.Fatal(out)
	}
	l.eventually("the node is tainted", func() error {
		out, err := kubectl(t.Context(), "get", "node", n1, "-o", "jsonpath={.spec.taints}")
		if err == nil && !strings.Contains(out, "spot-eviction") {
			err = errors.New(out)
		}
		return err
	})
	l.eventually("kubectl describe node tells why", func() error {
		out, err := kubectl(t.Context(), "describe", "node", n1)
		if err == nil && !strings.Contains(out, "SpotEvictionTaintAdded") {
			err = errors.New(out)
		}
		return err
	})
	l.eventually("both are counted", func() error {
		body, err := get(weir.metrics, "/metrics")
		for _, series := range []string{`out-of-service"} 0`, `spot-eviction"} 1`, `example.com/leaves=` + l.namespace + `"} 1`} {
			if err == nil && !strings.Contains(body, `weir_nodes_draining{reason="`+series) {
				err = fmt.Errorf("no %s", series)
			}
		}
		return err
	})
}
