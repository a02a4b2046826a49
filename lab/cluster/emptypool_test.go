// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers/services/servicelb"
)

// A Service is not programmed while Azure rejects all members of its pool.
func TestAServiceWithoutMembersIsNotProgrammed(t *testing.T) {
	for _, tt := range []struct {
		about     string
		configure func(*config.Config)
		writes    []string
	}{
		{"addresses", func(*config.Config) {}, []string{"path: 'backendAddressPools/*', kind: put"}},
		{"network interfaces", useInterfaces, []string{"path: 'networkInterfaces/*', kind: put", "path: 'virtualMachineScaleSets/*', kind: patch", "path: 'virtualMachineScaleSets/*/virtualMachines/*', kind: put"}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			runStage(t, Options{Configure: tt.configure}, func(s *Stage) {
				reason := func() string {
					svc := &corev1.Service{}
					failOn(s.userClient.Get(ctx, parseKey("shop/web"), svc))
					return programmedReason(svc)
				}
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				var faults []string
				for _, match := range tt.writes {
					faults = append(faults, "{name: fault, match: {"+match+"}, action: {status: 400, code: SomethingNew, message: broken}}")
				}
				failOn(s.AzureFaults(faults...))
				s.Start()
				failOn(s.AddService("shop/web", nil))
				s.Sleep(2 * time.Minute)
				if got := reason(); got != servicelb.ConditionReasonPoolEmpty {
					t.Errorf("Programmed has the reason %q", got)
				}
				s.EndFaults()
				failOn(s.WaitInSync(15 * time.Minute))
				s.Sleep(time.Minute)
				if got := reason(); got == servicelb.ConditionReasonPoolEmpty {
					t.Error("PoolEmpty is still reported")
				}
			})
		})
	}
}
