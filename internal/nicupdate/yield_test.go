// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A write of the load balancer has lost twice while machines join: those under way end, and no other begins
// for a moment, which is said. A second loss meanwhile makes it longer; one when none is under way does not.
func TestMachinesYieldToALoadBalancer(t *testing.T) {
	inWorld(t, func(w *world) {
		var names []string
		for n := range 10 {
			names = append(names, fmt.Sprintf("n%d", n))
			w.has(names[n], "")
		}
		all := strings.Join(names, " ")
		w.u.Yield()
		w.bring("a/k8s", all, "")
		w.wait(2 * time.Second)
		w.expect("four are under way", w.count(), "LIST 1 PUT 4")
		w.u.Yield()
		w.wait(40 * time.Second)
		w.u.Yield() // by somebody else
		w.expect("none has begun", w.count(), "")
		if got := w.bring("a/k8s", all, ""); !strings.Contains(got, "waits n9: a load balancer is written first") {
			t.Errorf("got %q", got)
		}
		w.wait(4 * time.Second)
		w.expect("nor has one now", w.count(), "")
		w.wait(time.Minute)
		w.expect("the others", w.count(), "LIST 1 PUT 6") // and a look at the first four, which the pool did not show
	})
}
