// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// One wrong response to any request does not keep endpoint changes and new or deleted Services from
// reaching Azure well before the next drift read. A 404 to a deletion is trusted.
func TestOneWrongAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	local := func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }
	for _, kind := range []string{"put", "get", "list", "poll", "delete"} {
		for status, code := range map[int]string{400: "InvalidRequest", 404: "ResourceNotFound", 410: "Gone", 412: "PreconditionFailed"} {
			for nth := 1; nth <= 3 && (kind != "delete" || status != 404); nth++ {
				t.Run(fmt.Sprintf("%s %d %d", kind, nth, status), func(t *testing.T) {
					runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
						for n := range 3 {
							failOn(s.AddNode(n))
						}
						s.Start()
						failOn(s.AddService("shop/web", local))
						failOn(s.AddService("shop/old", local))
						failOn(s.SetEndpoints("shop/web", map[int]bool{0: true}))
						failOn(s.WaitInSync(5 * time.Minute))
						failOn(s.AzureFaults(fmt.Sprintf("{match: {path: '**', kind: %s, nth: %d}, action: {status: %d, code: %s}}", kind, nth, status, code)))
						failOn(s.SetEndpoints("shop/web", map[int]bool{1: true}))
						failOn(s.AddService("blog/new", local))
						failOn(s.DeleteService("shop/old"))
						s.Sleep(time.Minute)
						failOn(s.SetEndpoints("blog/new", map[int]bool{1: true, 2: true}))
						failOn(s.WaitInSync(syncTimeout))
					})
				})
			}
		}
	}
}

// If the security group is missing while a Service is deleted and then returns, it allows no
// traffic for it after the next write.
func TestASecurityGroupThatIsNotThereForAMoment(t *testing.T) {
	runStage(t, Options{Configure: disableDrift}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.AddService("shop/old", nil))
		failOn(s.WaitInSync(5 * time.Minute))
		failOn(s.AzureFaults("{match: {path: networkSecurityGroups/*, kind: get, maxMatches: 1}, action: {status: 404, code: ResourceNotFound}}"))
		failOn(s.DeleteService("shop/old"))
		failOn(s.AddService("blog/new", nil))
		failOn(s.WaitInSync(5 * time.Minute))
	})
}
