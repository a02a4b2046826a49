// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
)

// A second try waits for Retry-After: no call before it.
func TestNoSecondTryBeforeATimeThatAzureNames(t *testing.T) {
	for name, refused := range map[string]armerror.Failure{
		"another client was faster":   {Status: 412},
		"an interface joins":          {Status: 400, Codes: []string{codeInterfaceMember}},
		"the load balancer is Failed": {Status: 400, Codes: []string{armerror.CodeParentFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			var parent failedParent
			inWorldOf(t, Config{MaxRetries: 3, LoadBalancers: &parent}, func(w *world) {
				parent.world, parent.failed = w, true
				w.pool(web, "")
				until := w.start.Add(5 * time.Minute)
				w.failingPool("PUT", web, 1, func() armerror.Failure { refused.RetryAt = until; return refused })
				w.change(web, "n1=10.0.0.1")
				w.wait(5*time.Minute - time.Second)
				w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1]", "+250ms PUT web n1=10.0.0.1")
				w.wait(time.Minute)
				w.expectReports("web Retriable Retrying:web", "web Written Updated:web")
			})
		})
	}
}

// A pool that turns out to hold interfaces is reported as such: nothing computed for its addresses
// remains, and the rejected write is not a lost one.
func TestOfAPoolThatBecameOneOfInterfacesNothingIsLeft(t *testing.T) {
	refused := armerror.Classify(armerror.Failure{Status: 400, Codes: []string{codeInterfaceMember}}, errors.New("refused"))
	t.Run("no node leaves any more", func(t *testing.T) {
		inAdminWorld(t, func(w *world) {
			w.pool(web, "n1=10.0.0.1 vm=10.9.9.9")
			w.change(web, "n1=10.0.0.1")
			w.wait(10 * time.Second)
			w.beforePut(func() error {
				w.interfaces(web, "nic-n1")
				w.wanted["web"], w.down["web"] = addresses("n1=10.0.0.1"), nil
				return refused
			})
			w.set(func() { w.reports = nil })
			w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
			w.wait(time.Second)
			for _, r := range w.reports {
				if len(r.MarkedDown)+len(r.Down)+len(r.Written)+r.Foreign > 0 {
					t.Errorf("%+v", r)
				}
			}
			if len(w.reports) != 1 {
				t.Errorf("%d reports", len(w.reports))
			}
		})
	})
	t.Run("its interface is Down already", func(t *testing.T) {
		inAdminWorld(t, func(w *world) {
			w.pool(web, "")
			w.beforePut(func() error {
				w.interfaces(web, "nic-n1/Down")
				return refused
			})
			w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
			w.wait(10 * time.Second)
			if puts := strings.Count(fmt.Sprint(w.calls), "PUT web"); puts != 1 {
				t.Errorf("%d writes: %q", puts, w.calls)
			}
			w.expectDown("10.0.0.1")
		})
	})
}
