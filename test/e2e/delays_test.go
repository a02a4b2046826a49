// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
)

// With the role of config/delay-node-deletion, a member delays the cluster autoscaler until it is Down.
func TestAMemberDelaysTheClusterAutoscaler(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.withoutAdminStates()
	l.pool("web")
	n1, n2, n3 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2"), l.node("n3", "10.0.0.3")
	l.service("web", n1, n3)
	l.kubectl("apply", "--server-side", "-k", "../../config/delay-node-deletion")
	l.t.Cleanup(func() {
		_, _ = l.cluster.kubectl(context.WithoutCancel(l.t.Context()), "delete", "-k", "../../config/delay-node-deletion")
	})
	l.controller("--leader-elect=false", "--delay-node-deletion")
	l.becomes("web", "10.0.0.1", "10.0.0.3")
	expect := func(node, want string) {
		t.Helper()
		l.eventually("annotation of node "+node, func() error {
			out, err := l.cluster.kubectl(t.Context(), "get", "node", node, "-o", `jsonpath={.metadata.annotations.delay-deletion\.cluster-autoscaler\.kubernetes\.io/weir}`)
			if err == nil && out != want {
				err = fmt.Errorf("is %q, want %q", out, want)
			}
			return err
		})
	}
	expect(n1, "true")
	expect(n2, "")
	expect(n3, "true")
	l.kubectl("taint", "node", n1, fmt.Sprintf("ToBeDeletedByClusterAutoscaler=%d:NoSchedule", time.Now().Unix()))
	l.expectDown("web", "10.0.0.1")
	expect(n1, "")
}
