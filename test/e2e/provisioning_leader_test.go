// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	"weir.dev/weir/api/v1alpha1"
)

// The leading provisioner is killed while one attempt runs, one waits and one is canceled. A user
// cancels and retries before the other process leads. It continues the running attempt, and every
// other Provision has exactly the requested attempts.
func TestProvisioningOutlivesItsLeader(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	p.installRoles()
	provision := "apiVersion: weir.dev/v1alpha1\nkind: Provision\nmetadata: {name: %s}\nspec:\n" +
		"  target: {serviceAccountName: installer}\n  steps: [{name: told, wait: {apiVersion: v1, kind: %s, name: go}}]\n" +
		"  policy: {initialInterval: 1h, maxInterval: 1h}\n---\n"
	text := fmt.Sprintf(provision, "underway", "ConfigMap")
	for _, fails := range []string{"waits", "cancelled", "asked"} { // the ServiceAccount may not read Nodes
		text += fmt.Sprintf(provision, fails, "Node")
	}
	p.applyFile(text)
	first := p.provisioner()
	p.waitState("underway", v1alpha1.ProvisionRunning, 1)
	for _, fails := range []string{"waits", "cancelled", "asked"} {
		p.waitState(fails, v1alpha1.ProvisionWaiting, 1)
	}
	p.asks("cancelled", v1alpha1.CancelAnnotation)
	p.waitState("cancelled", v1alpha1.ProvisionCancelled, 1)
	p.waitStandby(p.provisioner())

	first.Kill()
	p.asks("asked", v1alpha1.RetryNowAnnotation)
	p.asks("underway", v1alpha1.CancelAnnotation)
	p.eventually("the cancellation is heard", func() error {
		if status := p.waitState("underway", v1alpha1.ProvisionRunning, 1); !status.Cancelled {
			return errors.New("not cancelled")
		}
		return nil
	})
	p.waitState("asked", v1alpha1.ProvisionWaiting, 2)
	p.does("-n", p.namespace, "create", "configmap", "go")
	p.waitState("underway", v1alpha1.ProvisionSucceeded, 1)
	for name, want := range map[string]struct {
		state string
		begun int32
	}{
		"underway": {v1alpha1.ProvisionSucceeded, 1}, "waits": {v1alpha1.ProvisionWaiting, 1},
		"cancelled": {v1alpha1.ProvisionCancelled, 1}, "asked": {v1alpha1.ProvisionWaiting, 2},
	} {
		if status := p.waitState(name, want.state, want.begun); status.AttemptNumber != int64(want.begun) {
			t.Errorf("%s: %d attempts were begun, want %d", name, status.AttemptNumber, want.begun)
		}
	}
}
