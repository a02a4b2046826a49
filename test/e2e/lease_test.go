// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
)

var locker = key("kube-system", "aks-managed-resource-locker")

// With the setting and the roles of config/resource-lease, Weir shares the load balancers with
// another controller; without the roles it reports that and writes nothing.
func TestBesideAnotherControllerOfTheLoadBalancers(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	t.Cleanup(func() {
		for _, name := range [][]string{{"-k", "../../config/resource-lease"}, {"-n", locker.Namespace, "lease", locker.Name}} {
			if out, err := l.cluster.kubectl(context.WithoutCancel(t.Context()), append([]string{"delete", "--ignore-not-found"}, name...)...); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	l.pool("web", "10.9.9.9")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.service("web", n1)
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","loadBalancerBackendPoolUpdateIntervalInSeconds":1,"useResourceLease":true}`)
	weir := l.controller("--leader-elect=false")
	l.expectStatusText("web", "cannot get resource") // forbidden, and the missing permission
	if calls := l.emulator.Calls(armemu.ByKind(armemu.KindGet, armemu.KindPut)); len(calls) != 0 {
		t.Errorf("%d calls to Azure without the lease", len(calls))
	}
	if out, err := l.cluster.kubectl(t.Context(), "apply", "--server-side", "-k", "../../config/resource-lease"); err != nil {
		t.Fatal(out)
	}
	l.becomes("web", "10.0.0.1", "10.9.9.9")

	l.eventually("the other takes the lease", func() error { return l.takeLease("cloud-controller-manager") })
	l.move("web", n2)
	l.expectStatusText("web", `is held by "cloud-controller-manager"`)
	l.expectStatus(0, "In progress: 1 BackendPool", `is held by "cloud-controller-manager"`, "Service web")
	if got := l.members("web"); !slices.Equal(got, []string{"10.0.0.1", "10.9.9.9"}) {
		t.Errorf("written while another client held the lease: %v", got)
	}
	l.eventually("metrics", func() error {
		body, err := get(weir.metrics, "/metrics")
		if err == nil && (!strings.Contains(body, "weir_resource_lease_held 0\n") || strings.Contains(body, "weir_resource_lease_refusals_total 0\n")) {
			err = fmt.Errorf("no refusal is counted")
		}
		return err
	})
	l.eventually("the other lets go", func() error { return l.takeLease("") })
	l.becomes("web", "10.0.0.2", "10.9.9.9")

	l.must(weir.Signal(syscall.SIGTERM))
	if err := weir.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	var stands coordinationv1.Lease
	l.must(l.cluster.Get(t.Context(), locker, &stands))
	if *stands.Spec.HolderIdentity != "" {
		t.Errorf("after its end the lease is held by %q", *stands.Spec.HolderIdentity)
	}
	if n := strings.Count(weir.ReadOutput(), "no resource lease"); n != 2 {
		t.Errorf("%d log lines, want one without the roles and one behind the other", n)
	}
}

// takeLease writes another holder unless Weir holds the lease.
func (l *lab) takeLease(holder string) error {
	var stands coordinationv1.Lease
	if err := l.cluster.Get(l.t.Context(), locker, &stands); err != nil {
		return err
	}
	if h := stands.Spec.HolderIdentity; h != nil && strings.HasPrefix(*h, "weir-controller_") {
		return fmt.Errorf("held by %s", *h)
	}
	now := metav1.NowMicro()
	stands.Spec.HolderIdentity, stands.Spec.RenewTime, stands.Spec.LeaseDurationSeconds = &holder, &now, new(int32(3600)) // it does not expire in the test
	return l.cluster.Update(l.t.Context(), &stands)
}

func (l *lab) expectStatusText(name, part string) {
	l.t.Helper()
	l.eventually("BackendPool "+name, func() error {
		out, err := l.cluster.kubectl(l.t.Context(), "-n", l.namespace, "get", "backendpool", name, "-o", "jsonpath={.status.conditions}")
		if err != nil || !strings.Contains(strings.ReplaceAll(out, `\"`, `"`), part) {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}
