// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A load balancer write lost twice while machines join: running attempts finish, and no other
// starts for a moment, which is reported. A second loss extends the pause; a loss while no machine
// is working does not start one.
func TestMachinesYieldToALoadBalancer(t *testing.T) {
	inWorld(t, func(w *world) {
		var names []string
		for n := range 10 {
			names = append(names, fmt.Sprintf("n%d", n))
			w.has(names[n], "")
		}
		text := strings.Join(names, " ")
		w.u.PauseWrites()
		w.bring("a/k8s", text, "")
		w.wait(2 * time.Second)
		w.expect("four are under way", w.count(), "LIST 1 PUT 4")
		w.u.PauseWrites()
		w.wait(40 * time.Second)
		w.u.PauseWrites() // by another writer
		w.expect("none has begun", w.count(), "")
		if got := w.bring("a/k8s", text, ""); !strings.Contains(got, "waits n9: a load balancer is written first") {
			t.Errorf("got %q", got)
		}
		w.wait(4 * time.Second)
		w.expect("nor has one now", w.count(), "")
		w.wait(time.Minute)
		w.expect("the others", w.count(), "LIST 1 PUT 6") // and a read of the first four, which the pool did not show
	})
}
