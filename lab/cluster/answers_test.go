// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"
)

// A security group that is not there while a Service leaves, and is again, lets nobody in for it once it is written.
func TestASecurityGroupThatIsNotThereForAMoment(t *testing.T) {
	stage(t, Options{Configure: rarely}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.AddService("shop/old", nil))
		must(s.Settles(5 * time.Minute))
		must(s.AzureFaults("{match: {path: networkSecurityGroups/*, kind: get, maxMatches: 1}, action: {status: 404, code: ResourceNotFound}}"))
		must(s.DeleteService("shop/old"))
		must(s.AddService("blog/new", nil))
		must(s.Settles(5 * time.Minute))
	})
}
