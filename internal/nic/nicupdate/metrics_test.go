// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// meter records calls as text.
type meter struct {
	mu  sync.Mutex
	all []string
}

func (m *meter) ObserveWrite(kind nic.Kind, err error) {
	text := string(kind)
	if err != nil {
		text += " failed"
	}
	m.note(text)
}

func (m *meter) ObserveDuration(elapsed time.Duration) { m.note(elapsed.String()) }

func (m *meter) note(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, text)
}

func (m *meter) take() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := strings.Join(m.all, ", ")
	m.all = nil
	return text
}

// Each write is recorded, and how long a machine took since it was requested, failed attempts
// included. Reads of machines in sync are not recorded.
func TestMetrics(t *testing.T) {
	inWorld(t, func(w *world) {
		w.has("n1", "")
		w.has("n2", "a/k8s")
		w.failing("PUT n1", 1, armerror.Failure{Status: 409})
		w.bring("a/k8s", "n1 n2 n3", "")
		w.expect("at work", fmt.Sprint(w.u.MachineCounts()), "{3 0 0}")
		w.wait(time.Minute)
		w.expect("it has failed", w.meter.take(), "network interface failed")
		w.expect("not there", fmt.Sprint(w.u.MachineCounts()), "{0 1 1}") // n3 has no interface
		w.bring("a/k8s", "n1 n2 n3", "")
		w.bring("a/k8s", "n1 n2 n3", "")
		w.wait(30 * time.Second)
		w.expect("another try", w.meter.take(), "network interface, 1m3.1s")
		w.bring("a/k8s", "n1 n2", "")
		w.wait(30 * time.Second)
		w.bring("a/k8s", "n1 n2", "") // Azure does not show the change
		w.wait(30 * time.Second)
		w.expect("nothing more", w.meter.take(), "")
		w.expect("all there", fmt.Sprint(w.u.MachineCounts()), "{0 0 0}")
	})
	inWorld(t, func(w *world) {
		w.hasSet("blue", lb.UpgradeManual, "")
		w.has("blue/0", "")
		w.has("blue/1", "")
		w.set(func() { w.insts["blue/1"].LatestModel = false })
		w.bring("a/k8s", "blue/0 blue/1", "")
		w.wait(time.Minute)
		w.expect("a scale set", w.meter.take(), "scale set, scale set, instance, 7.6s, 7.6s")
	})
}
