// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/lab/armemu"
)

// mostWrites is the number of retries in two minutes: after 5, 10, 20, 40 and 80 s.
const mostWrites = 6

// A repeated rejection costs one write per backoff step, whatever the resource or reason.
func TestARejectionIsNotRepeatedAtOnce(t *testing.T) {
	const public = "{ports: 80}"
	published := `{ports: 80, azure-load-balancer-internal: "true", azure-pls-create: "true"}`
	for _, code := range []string{"400, code: Bad", "401, code: ExpiredAuthenticationToken", "403, code: AuthorizationFailed"} {
		for _, tt := range []struct {
			about, match, spec string
			deletes            bool
		}{
			{"load balancer", "kind: put, path: '**/loadBalancers/*'", public, false},
			{"load balancer, deleted", "kind: delete, path: '**/loadBalancers/*'", public, true},
			{"public IP", "kind: put, path: '**/publicIPAddresses/*'", public, false},
			{"public IP, deleted", "kind: delete, path: '**/publicIPAddresses/*'", public, true},
			{"security group", "kind: put, path: '**/networkSecurityGroups/*'", public, false},
			{"security group, closed", "kind: put, path: '**/networkSecurityGroups/*'", public, true},
			{"private link service", "kind: put, path: '**/privateLinkServices/*'", published, false},
			{"private link service, deleted", "kind: delete, path: '**/privateLinkServices/*'", published, true},
		} {
			t.Run(tt.about+" "+code[:3], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(func(set *loadbalancer.Settings) { linked(set); guarded(set) })
					defer s.close()
					s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
					if tt.deletes {
						s.applyAll("shop/a: " + tt.spec)
						s.settle(time.Hour)
					}
					must(s.emu.SetFaults(fmt.Sprintf("rules: [{match: {%s}, action: {status: %s, message: broken}}]", tt.match, code)))
					s.emu.ClearCalls()
					if tt.deletes {
						s.remove("shop/a")
					} else {
						s.applyAll("shop/a: " + tt.spec)
					}
					s.settle(2 * time.Minute)
					rejected := 0
					for _, c := range s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)) {
						if strings.Contains(code, fmt.Sprint(c.Status)) {
							rejected++
						}
					}
					if rejected < 3 || rejected > mostWrites {
						t.Errorf("%d writes\n%s", rejected, s.harvest(false))
					}
				})
			})
		}
	}
}

// A deny assignment and a rejected sign-in affect all Services, as a missing permission does: no extra write looks for
// the Service that Azure rejects.
func TestDenyAssignmentIsNoServiceError(t *testing.T) {
	writes := map[string]int{}
	for _, code := range []string{"400, code: Bad", "401, code: ExpiredAuthenticationToken", "403, code: AuthorizationFailed", "403, code: DenyAssignmentAuthorizationFailed"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(guarded)
			defer s.close()
			s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
			must(s.emu.SetFaults("rules: [{match: {kind: put, path: '**/networkSecurityGroups/*'}, action: {status: " + code + ", message: broken}}]"))
			s.applyAll("shop/a: {ports: 80}\nshop/b: {ports: 81}\nshop/c: {ports: 82}")
			s.settle(2 * time.Minute)
			for _, c := range s.emu.Calls(armemu.ByKind(armemu.KindPut)) {
				if strings.Contains(c.Path, "networkSecurityGroups") {
					writes[code]++
				}
			}
		})
	}
	rejected, signIn, missing, denied := writes["400, code: Bad"], writes["401, code: ExpiredAuthenticationToken"], writes["403, code: AuthorizationFailed"], writes["403, code: DenyAssignmentAuthorizationFailed"]
	if denied == 0 || denied != missing || signIn != missing || rejected <= denied {
		t.Errorf("writes %v: want as many for a deny assignment and a rejected sign-in as for a missing permission, and fewer than for a rejection", writes)
	}
}
