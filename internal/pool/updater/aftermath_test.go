// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
)

// A write that Azure rejected as one of interfaces, after a gateway had lost it, may still land.
func TestALostWriteOfAnInterfaceMemberStaysOpen(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		w.beforePut(func() error {
			return armerror.Classify(armerror.Failure{Status: 400, Codes: []string{codeInterfaceMember}, MayBeApplied: true}, errors.New("x"))
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(debounce + 5*time.Second)
		if lost := w.standing(web).history.Writes.PendingEtag; lost != "1" {
			t.Errorf("the lost write is not feared: %q", lost)
		}
	})
}

// The same for a 4xx without a second try, within one attempt.
func TestALostWriteStaysOpen(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		w.beforePut(func() error {
			return armerror.Classify(armerror.Failure{Status: 400, Codes: []string{"Other"}, MayBeApplied: true}, errors.New("x"))
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(debounce + 5*time.Second)
		if lost := w.standing(web).history.Writes.PendingEtag; lost != "1" {
			t.Errorf("the lost write is not feared: %q", lost)
		}
	})
}

// End to end: the lost write lands after the change was reverted, and removes an endpoint, which is
// then restored.
func TestALostWriteOfAnInterfaceMemberThatLandsIsMended(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(10 * time.Second)
		etag := w.pools[web.Key()].Etag
		w.beforePut(func() error {
			return armerror.Classify(armerror.Failure{Status: 400, Codes: []string{codeInterfaceMember}, MayBeApplied: true}, errors.New("x"))
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(2 * interval)
		if p := w.pools[web.Key()]; p.Etag == etag { // it lands
			p.Addresses, p.Etag = addresses("n1=10.0.0.1"), nextEtag(etag)
		}
		w.wait(time.Hour)
		w.expectPool(web, "n1=10.0.0.1 n2=10.0.0.2")
	})
}
